import { describe, expect, it } from 'vitest';
import { parseRedisUrl } from '../../src/config/redis-url.ts';

const nobody = { username: undefined, password: undefined };

describe('a Redis URL', () => {
  it.each([
    [
      'redis://localhost',
      { hosts: [{ host: 'localhost', port: 6379 }], ...nobody, db: 0, isTls: false, kind: 'single' },
    ],
    ['rediss://[::1]:7000/3', { hosts: [{ host: '::1', port: 7000 }], db: 3, isTls: true, kind: 'single' }],
    ['redis://:p%40ss@h', { username: undefined, password: 'p@ss' }],
    ['redis://user:a:b@h:1', { username: 'user', password: 'a:b', hosts: [{ host: 'h', port: 1 }] }],
    [
      'redis+sentinel://a,b:5/main/2',
      {
        kind: 'sentinel',
        hosts: [
          { host: 'a', port: 26379 },
          { host: 'b', port: 5 },
        ],
        masterName: 'main',
        db: 2,
      },
    ],
    ['rediss+cluster://u:p@a:1,b:2', { kind: 'cluster', isTls: true, username: 'u', password: 'p' }],
  ])('is read: %s', (url, expected) => {
    expect(parseRedisUrl(url)).toMatchObject(expected);
  });

  it.each([
    'http://secret@h',
    'redis://',
    'redis://secret@a,b',
    'redis://secret@h/x',
    'redis://secret@h:99999',
    'redis://%zz:secret@h',
    'redis+sentinel://secret@h',
    'redis+cluster://secret@h/1',
    'redis://secret@h/0/1',
    'redis://secret@h?x=1',
  ])('is refused, without its text: %s', (url) => {
    expect(() => parseRedisUrl(url)).toThrow(TypeError);
    expect(() => parseRedisUrl(url)).not.toThrow(/secret/);
  });
});
