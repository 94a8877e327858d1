import { expect, test } from 'vitest';

const file = new URL('../src/page/figures.js', import.meta.url).href;
const { describeOutcome, figures } = await import(file);

const redis = (store: object) => figures.Store({ instance: { store: { kind: 'redis', isUp: true, ...store } } });

test('Redis is well, slow or away', () => {
  expect(redis({ meanMs: 2, longestMs: 90 })).toMatchObject({ value: 'Redis is well', mood: 'good' });
  expect(redis({})).toMatchObject({ value: 'Redis is well' });
  expect(redis({ meanMs: 25, longestMs: 90 })).toMatchObject({ value: 'Redis is slow', mood: 'warn' });
  expect(redis({ meanMs: 2, longestMs: 1_000 })).toMatchObject({ value: 'Redis is slow' });
  expect(redis({ isUp: false })).toMatchObject({ value: 'Redis is away', mood: 'bad' });
  expect(redis({ unreachable: ['tcp:10.0.0.2:9465'] })).toMatchObject({
    ...{ value: '1 instance out of reach', mood: 'bad', detail: expect.stringContaining('tcp:10.0.0.2:9465') },
  });
});

test('sessions in files that no client has used since the start are told beside the others', () => {
  const detail = (store: object) =>
    figures.Sessions({ instance: { sessions: 0, streams: 0, maxSessions: 1_000, usual: {}, store }, instances: [{}] })
      .detail;
  expect(detail({ waiting: 12 })).toMatch(/^12 more in files, not used since the start; /);
  expect(detail({})).not.toContain('in files');
});

test('memory that grows fast is amber', () => {
  const memory = (grownBytes: number) =>
    figures.Memory({ instance: { memoryBytes: 3e8, childBytes: 1e8, usual: { grownBytes } }, servers: [] }).mood;
  expect([memory(2e8), memory(6e7), memory(-2e8)]).toEqual(['warn', '', '']);
});

test('the servers that lost most processes are named, and the others counted', () => {
  const detail = (...exits: number[]) =>
    figures['Lost processes']({ servers: exits.map((count, name) => ({ name: `s${name}`, exits: count })) }).detail;
  expect(detail(1, 9, 0)).toBe('in 5 min: s1 9, s0 1');
  expect(detail(1, 9, 3, 2)).toBe('in 5 min: s1 9, s2 3, and 2 more servers');
  expect(detail(0)).toBe('nothing restarted in 5 min');
});

test('a refusal has its servers and the address of its sender', () => {
  const last = {
    server: 'files',
    reason: 'host_not_allowed',
    at: 0,
    detail: 'Host: evil.example',
    address: '192.0.2.1',
  };
  const reasons = [{ reason: 'host_not_allowed', count: 2, servers: ['files', 'mail'] }];
  const { detail } = figures['Refused requests']({ instance: { refusals: { count: 2, reasons, last } } });
  expect(detail).toMatch(
    /^2 × wrong host at files, mail in 5 min\. Last at [\d:]+ from 192\.0\.2\.1 at files \(Host: evil\.example\)$/,
  );
});

test('calls that their clients gave up are not called failed, and are counted', () => {
  expect(describeOutcome({ calls: 0, failures: 0, left: 0 })).toBe('no calls in 2 min');
  expect(describeOutcome({ calls: 3, failures: 0, left: 0 })).toBe('3 calls in 2 min, none failed');
  expect(describeOutcome({ calls: 1, failures: 0, left: 1 })).toBe(
    '1 call in 2 min, none failed, 1 given up by the client',
  );
});
