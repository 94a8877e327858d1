import { expect, it } from 'vitest';
import { readRedisTls } from '../../src/app/tls-files.ts';

const none = { redisCa: undefined, redisCert: undefined, redisKey: undefined };

it('reads nothing where no option is set', () => {
  expect(readRedisTls(none)).toEqual({});
});

it.each([
  [
    'that cannot be read',
    { redisCa: '/no/such/file' },
    'The file of --advanced.cluster.redisCa cannot be read: ENOENT',
  ],
  [
    'without a certificate',
    { redisCa: '/dev/null' },
    'The file of --advanced.cluster.redisCa contains no PEM certificate',
  ],
  [
    'that no connection can use',
    { redisCert: import.meta.filename, redisKey: import.meta.filename },
    'The files of --advanced.cluster.redisCa, --advanced.cluster.redisCert, --advanced.cluster.redisKey cannot be used',
  ],
])('names the options of files %s', (_, files, message) => {
  expect(() => readRedisTls({ ...none, ...files })).toThrow(message);
});
