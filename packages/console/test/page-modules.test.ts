import { describe, expect, test } from 'vitest';

const load = (name: string) => import(new URL(`../src/page/${name}.js`, import.meta.url).href);
const { readAddress, writeAddress } = await load('address');
const { textOfAnswer } = await load('answer-text');
const { fillRange, summarize } = await load('spark');
const { bytesAxis, durationAxis } = await load('formats');
const { describeHealth, describeNumbers } = await load('health-line');
const { describeHelp } = await load('causes');

describe('an address', () => {
  test('has a view, parts and choices, and is written as it was read', () => {
    const hash = writeAddress('playground', ['my server', 'a/b?c'], { sort: '-calls', of: '' });
    expect(hash).toBe('#playground/my%20server/a%2Fb%3Fc?sort=-calls');
    expect(readAddress(hash)).toEqual({
      ...{ view: 'playground', parts: ['my server', 'a/b?c'], choices: { sort: '-calls' } },
    });
  });

  test('has no empty parts at its end, and one that nobody could have written is read as it is', () => {
    expect(writeAddress('sessions', ['', undefined])).toBe('#sessions');
    expect(readAddress('#sessions/100%')).toMatchObject({ view: 'sessions', parts: ['100%'] });
    expect(readAddress('')).toEqual({ view: '', parts: [], choices: {} });
  });
});

test('a failed answer says its text or its message, and nothing if it was cut', () => {
  const content = [{ type: 'text', text: 'mailbox is busy,' }, { type: 'image' }, { type: 'text', text: 'try later' }];
  expect(textOfAnswer(JSON.stringify({ result: { isError: true, content } }))).toBe('mailbox is busy, try later');
  expect(textOfAnswer('{"error":{"code":-32602,"message":"no such tool"}}')).toBe('no such tool');
  expect(textOfAnswer(JSON.stringify({ error: { message: 'x'.repeat(500) } }))).toBe(`${'x'.repeat(300)} …`);
  for (const none of [undefined, '{"result":{"cont …', '{"result":{}}', 'null', '{"result":{"content":5}}'])
    expect(textOfAnswer(none)).toBe('');
});

test('a spark line shows the highest step of each bar, also with fewer steps than bars', () => {
  expect(summarize([1, 5, null, 2, 0, 3], 3)).toEqual([5, 2, 3]);
  expect(summarize([4, null], 4)).toEqual([4, 4, 0, 0]);
  expect(summarize([], 2)).toEqual([0, 0]);
});

test('a spark line of a gateway that has just started has its calls at the end of the range', () => {
  expect(summarize(fillRange([0, 3], 8), 4)).toEqual([0, 0, 0, 3]);
  expect([fillRange(undefined, 2), fillRange([1, 2, 3], 2)]).toEqual([
    [null, null],
    [1, 2, 3],
  ]);
});

test('the ticks of an axis have one unit', () => {
  const plain = (texts: string[]) => texts.map((text) => text.replace('\u00a0', ' '));
  expect(plain(durationAxis([0, 500, 1_000, 1_500]))).toEqual(['0', '0.5 s', '1 s', '1.5 s']);
  expect(plain(durationAxis([0, 2, 10]))).toEqual(['0', '2 ms', '10 ms']);
  expect(plain(bytesAxis([0, 2 ** 29, 2 ** 30]))).toEqual(['0', '0.5 GiB', '1 GiB']);
});

describe('the line of health', () => {
  const server = (name: string, state: string) => ({ name, condition: { state } });
  const health = (servers: object[], instance: object = {}) => {
    const { mood, parts } = describeHealth({
      instance: { readiness: 'ready', store: { kind: 'memory', isUp: true }, ...instance },
      servers,
    });
    return [
      mood,
      parts.map((part: string | { text: string }) => (typeof part === 'string' ? part : part.text)).join(''),
    ];
  };

  test('says that all is well, and how many servers are up', () => {
    expect(health([server('a', 'up'), server('b', 'unused')])).toEqual([
      'good',
      'All is well. 1 server up, 1 not used yet.',
    ]);
    expect(health([server('a', 'unused')])).toEqual(['good', 'Ready. 1 server, not used yet.']);
  });

  test('names what is wrong, the worst first', () => {
    const servers = ['a', 'b', 'c', 'd', 'e'].map((name) => server(name, 'degraded'));
    expect(health([...servers, server('f', 'down')])).toEqual(['bad', 'f is down. a, b, c and 2 more are degraded. ']);
    expect(health([server('a', 'down'), server('b', 'down')])).toEqual(['bad', 'a and b are down. ']);
    expect(health([server('a', 'slow')])).toEqual(['warn', 'a is slow. ']);
    expect(health([server('a', 'up')], { store: { kind: 'redis', isUp: false } })).toEqual(['bad', 'Redis is away. ']);
    expect(health([server('a', 'up')], { readiness: 'draining' })).toEqual(['bad', 'Draining. ']);
  });

  test('has refused requests and streams with missing events beside it, if there are any', () => {
    const numbers = (refused: number, broken: number): string[] =>
      describeNumbers({
        instance: {
          ...{ callsPerSecond: 0, calls: 0, p95Ms: null, memoryBytes: 0, childBytes: 0 },
          refusals: { count: refused },
          resumes: { broken },
        },
        ...{ instances: [{ sessions: 2 }], servers: [], tasks: { total: 0 } },
      }).map(({ text }: { text: string }) => text.replace('\u00a0', ' '));
    expect(numbers(0, 0)).toEqual(['2 sessions', '0 calls/s', 'no calls in 2 min', '0 B']);
    expect(numbers(3, 1)).toEqual(expect.arrayContaining(['3 refused', '1 stream with missing events']));
  });
});

describe('the help for a server', () => {
  const server = (state: string, more: object = {}) => ({
    ...{ condition: { state }, health: { help: 'Install it.' }, transport: 'stdio' },
    ...{ exits: 0, isFailing: false, noise: [], ...more },
  });

  test('is that of its failure if it is down, and none if it works', () => {
    expect([describeHelp(server('down')), describeHelp(server('up', { noise: ['x'] }))]).toEqual(['Install it.', '']);
  });

  test('has a sentence for each trouble of one that works', () => {
    expect(describeHelp(server('degraded', { exits: 1 }))).toMatch(/^Sessions go on with another process\. .*stderr/);
    expect(describeHelp(server('degraded', { exits: 1, transport: 'http' }))).toMatch(/another connection\./);
    const both = describeHelp(server('degraded', { isFailing: true, noise: ['x'] }));
    expect(both).toMatch(/^Errors lists the failed calls .* stdout\. Let it write its log to stderr\.$/);
  });
});
