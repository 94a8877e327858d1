import { describe, expect, it } from 'vitest';
import { maxServerDepth, type ReadBody, readBody } from '../../../../src/core/protocol/message/message.ts';

const nested = '['.repeat(1_001) + ']'.repeat(1_001);
const read = (text: string): ReadBody => readBody(Buffer.from(text), maxServerDepth);
const unreadIn = (text: string) => {
  const body = read(text);
  const [first] = body.ok ? body.messages : [];
  return first?.ok && first.message.standIn ? first.message : undefined;
};
const around = (before: string, after: string): string => `{${before}"result":{"a":${nested}}${after}}`;

describe('[P3] [S-05] what stands in for a response of a server that is not read', () => {
  const jsonrpc = '"jsonrpc":"2.0"';
  it.each<[string, string, string | number]>([
    ['its id is first', around(`${jsonrpc},"id":5,`, ''), 5],
    ['its id is last, as SDKs write it', around('', `,${jsonrpc},"id":5`), 5],
    ['its id is before, the version behind', around('"id":5,', `,${jsonrpc}`), 5],
    ['its id is behind, the version last', around('', `,"id":-5,${jsonrpc}`), -5],
    ['white space is around', ` ${around(' "id" : 5 , ', ` , ${jsonrpc.replace(':', ' : ')} `)}\r`, 5],
    ['its id is a text', around('', `,${jsonrpc},"id":"a\\"b\\\\"`), 'a"b\\'],
    ['other members are around', around(`"_meta":{"id":7},${jsonrpc},`, ',"x":null,"y":1.5e3,"id":5,"z":true'), 5],
    ['it is an error', around(`${jsonrpc},"id":5,`, '').replace('result', 'error'), 5],
  ])('%s', (_, text, id) => {
    const message = unreadIn(text);
    expect(message).toMatchObject({ kind: 'response', id, isError: true });
    const { error } = JSON.parse(message?.text.toString() ?? '{}');
    expect(error).toMatchObject({ code: -32000, data: { reason: 'response_too_complex' } });
  });

  it.each([
    ['too many values', `{"a":[${'0,'.repeat(2 ** 23)}0]}`],
    ['too many escapes', `"${'\\n'.repeat(2 ** 23)}"`],
  ])('of %s', (_, result) => {
    expect(unreadIn(`{"result":${result},${jsonrpc},"id":5}`)?.id).toBe(5);
    expect(unreadIn(`{${jsonrpc},"id":5,"result":${result}}`)?.id).toBe(5);
  });

  it('of a top level that is too wide, or has too long a key', () => {
    const keys = Array.from({ length: 9_000 }, (_, n) => `"k${n}":0`).join();
    expect(unreadIn(`{${jsonrpc},"id":5,"result":{},${keys}}`)?.id).toBe(5);
    expect(unreadIn(`{${keys},"result":{},${jsonrpc},"id":5}`)).toBeUndefined(); // the result is no scalar, and may be anything
    expect(unreadIn(`{${jsonrpc},"id":5,"result":{},"${'k'.repeat(5_000)}":0}`)?.id).toBe(5);
  });

  it('a request is one without its params, which is refused', () => {
    const message = unreadIn(`{${jsonrpc},"id":5,"method":"sampling/createMessage","params":{"a":${nested}}}`);
    expect(message).toMatchObject({ kind: 'request', id: 5, method: 'sampling/createMessage' });
  });

  it.each([
    ['a notification', `{${jsonrpc},"method":"x","params":{"a":${nested}}}`],
    ['no id', around(`${jsonrpc},`, '')],
    ['no version', around('"id":5,', '')],
    ['an id that is none', around(`${jsonrpc},"id":1.5,`, '')],
    ['too long an id', around(`${jsonrpc},"id":"${'x'.repeat(300)}",`, '')],
    ['an id of null', around(`${jsonrpc},"id":null,`, '')],
    ['an id within the result', `{${jsonrpc},"result":{"a":${nested},"id":5}}`],
    ['an id within a text', `{${jsonrpc},"result":{"a":${nested}},"x":",\\"id\\":5"}`],
    ['an outcome that is not seen', `{${jsonrpc},"id":5,"x":[${nested},"${'x'.repeat(70_000)}"],"result":{}}`],
    ['a batch', `[${around(`${jsonrpc},"id":5,`, '')}]`],
    ['a text that stops', around(`${jsonrpc},"id":5,`, '').slice(0, 500)],
  ])('nothing does for %s', (_, text) => {
    expect(unreadIn(text)).toBeUndefined();
    expect(read(text).ok).toBe(false);
  });

  it('nothing does for a text of a client', () => {
    const limits = { maxBatch: 10, maxMembers: 10, foldsKeys: true };
    expect(readBody(Buffer.from(around(`${jsonrpc},"id":5,`, '')), 100, limits)).toEqual({
      ok: false,
      reason: 'too_deep',
    });
  });

  it('an id that the window cuts is not one', () => {
    const pad = 'x'.repeat(64 * 1024 - 3 - `{${jsonrpc},"x":"","id":`.length);
    expect(unreadIn(`{${jsonrpc},"x":"${pad}","id":123456,"result":${nested}}`)).toBeUndefined();
  });
});
