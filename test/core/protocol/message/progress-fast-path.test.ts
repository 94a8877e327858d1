import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Message, memberValue, readBody } from '../../../../src/core/protocol/message/message.ts';

const anywhere = Number.POSITIVE_INFINITY;

/** What is read of a text; `behind` makes it differ from all that were read before, so that it is read member by member. */
function readAs(text: string, behind = '', maxDepth = anywhere): unknown {
  const body = readBody(Buffer.from(text + behind), maxDepth);
  if (!body.ok) return body;
  return body.messages.map((read) => (read.ok ? fieldsOf(read.message) : read));
}

const fieldsOf = (message: Message): unknown => ({
  text: message.text.toString(),
  kind: message.kind,
  id: message.id,
  method: message.method,
  progressToken: message.progressToken,
  cancels: message.cancels,
  taskId: message.taskId,
  asksForTask: message.asksForTask,
  isModern: message.isModern,
  isError: message.isError,
  params: memberValue(message, 'message', 'params'),
});

/** True if a text is known by its bytes alone. */
function isKnown(text: string): boolean {
  const body = readBody(Buffer.from(text), anywhere);
  const [read] = body.ok ? body.messages : [];
  return read?.ok === true && read.message.constructor.name === 'ProgressMessage';
}

const progress = (params: object): string =>
  JSON.stringify({ jsonrpc: '2.0', method: 'notifications/progress', params });

/** As the official SDK for TypeScript writes it. */
const sdkProgress = (params: object): string =>
  JSON.stringify({ method: 'notifications/progress', params, jsonrpc: '2.0' });

/** Reads it twice, after which its like are known. */
function learn(text: string): void {
  readAs(text);
  readAs(text);
}

describe('progress that was met before', () => {
  it.each([
    ['a number alone', (n: number) => progress({ progressToken: 7, progress: n })],
    ['a total', (n: number) => progress({ progressToken: 't', progress: n / 4, total: 1e21 + n })],
    ['a message', (n: number) => progress({ progressToken: 't', progress: -n, message: `step ${n}` })],
    ['all', (n: number) => progress({ progressToken: 't', progress: n, total: n, message: '' })],
    ['its token at the end', (n: number) => sdkProgress({ progress: n, total: 9, progressToken: 'é' })],
    ['members that mean nothing', (n: number) => progress({ a: 1, progressToken: 't', progress: n, b: '\\"' })],
  ])('[P1] with %s is known by its bytes, and read as if it were not', (_, make) => {
    learn(make(1));
    for (const n of [0, 2, 10, 1_000_000]) {
      expect(readAs(make(n))).toEqual(readAs(make(n), ' '));
      expect(isKnown(make(n))).toBe(true);
    }
  });

  it.each([
    ['another token', progress({ progressToken: 8, progress: 2, total: 3, message: 'a' })],
    ['no total', progress({ progressToken: 7, progress: 2, message: 'a' })],
    ['a message of other characters', progress({ progressToken: 7, progress: 2, total: 3, message: 'é' })],
    ['an escape', progress({ progressToken: 7, progress: 2, total: 3, message: '"' })],
    ['one member more', progress({ progressToken: 7, progress: 2, total: 3, message: 'a', x: 1 })],
    ['a text as its number', progress({ progressToken: 7, progress: '2', total: 3, message: 'a' })],
  ])('[P1] is not mistaken for one with %s', (_, text) => {
    learn(progress({ progressToken: 7, progress: 1, total: 3, message: 'a' }));
    expect(isKnown(text)).toBe(false);
    expect(readAs(text)).toEqual(readAs(text, ' '));
  });

  it.each([
    ['a `_meta`', progress({ progressToken: 7, progress: 1, _meta: { a: 1 } })],
    ['a task', progress({ progressToken: 7, progress: 1, taskId: 'a' })],
    ['no progress', progress({ progressToken: 7 })],
    ['an id', '{"jsonrpc":"2.0","id":1,"method":"notifications/progress","params":{"progressToken":7,"progress":1}}'],
    ['brackets around it', `[${progress({ progressToken: 7, progress: 1 })}]`],
  ])('[P1] with %s is read member by member', (_, text) => {
    learn(text);
    expect(isKnown(text)).toBe(false);
    expect(readAs(text)).toEqual(readAs(text, ' '));
  });

  it('[P8] is refused where nothing may be nested so deeply', () => {
    const text = progress({ progressToken: 7, progress: 1 });
    learn(text);
    expect(isKnown(text)).toBe(true);
    expect(readAs(text, '', 1)).toEqual({ ok: false, reason: 'too_deep' });
    const deep = '{"a":[[[[]]]]}';
    for (const where of [`"x":${deep},"progress":1`, `"progress":1,"x":${deep}`]) {
      const text = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,${where}}}`;
      learn(text);
      expect(readAs(text, '', 4)).toEqual({ ok: false, reason: 'too_deep' });
    }
  });

  it('[P1] is read as any other text is, whatever is changed in it', () => {
    const bytes = fc.constantFrom(...'0123456789-+.eE"\\,:{}[]ax \n\t\x00é'.split(''));
    const params = fc.record(
      { progressToken: fc.constantFrom(7, 't'), progress: fc.double({ noNaN: true, noDefaultInfinity: true }) },
      { requiredKeys: ['progressToken', 'progress'] },
    );
    const more = fc.record({ total: fc.integer(), message: fc.string({ unit: 'binary' }) }, { requiredKeys: [] });
    fc.assert(
      fc.property(params, more, fc.boolean(), fc.nat(), fc.nat(2), bytes, (needed, others, isSdk, at, cut, byte) => {
        const text = (isSdk ? sdkProgress : progress)({ ...needed, ...others });
        learn(text);
        const place = at % text.length;
        const changed = text.slice(0, place) + byte + text.slice(place + cut);
        expect(readAs(changed)).toEqual(readAs(changed, ' '));
        expect(readAs(text)).toEqual(readAs(text, ' '));
      }),
      { numRuns: 800 },
    );
  });
});
