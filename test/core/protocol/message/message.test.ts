import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import {
  type Message,
  memberValue,
  type ReadMessage,
  readBody,
} from '../../../../src/core/protocol/message/message.ts';

const read = (text: string, maxDepth = 100): ReadMessage => {
  const body = readBody(Buffer.from(text), maxDepth);
  if (!body.ok) return { ok: false, reason: body.reason, id: null };
  expect(body.messages.length).toBe(1);
  return body.messages[0] as ReadMessage;
};
const readGood = (text: string): Message => {
  const found = read(text);
  if (!found.ok) throw new Error(`${text} was refused: ${found.reason}`);
  return found.message;
};
const refused = (reason: string, id: unknown = null) => ({ ok: false, reason, id });
const request = (more: string) => `{"jsonrpc":"2.0","id":1,"method":"m"${more === '' ? '' : `,${more}`}}`;
const notification = (method: string, params: string) => `{"jsonrpc":"2.0","method":"${method}","params":${params}}`;

describe('readBody and kinds of messages', () => {
  it.each([
    ['a request', '{"jsonrpc":"2.0","id":1,"method":"tools/list"}', 'request', 1, 'tools/list'],
    ['a request with params', '{"method":"m","params":{"a":1},"id":"x","jsonrpc":"2.0"}', 'request', 'x', 'm'],
    ['a notification', '{"jsonrpc":"2.0","method":"n"}', 'notification', undefined, 'n'],
    ['a result', '{"jsonrpc":"2.0","id":1,"result":{}}', 'response', 1, undefined],
    ['a null result', '{"jsonrpc":"2.0","id":1,"result":null}', 'response', 1, undefined],
    ['an error', '{"jsonrpc":"2.0","id":"a","error":{"code":1,"message":""}}', 'response', 'a', undefined],
    [
      'an error to an unknown id',
      '{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}',
      'response',
      null,
      undefined,
    ],
    ['the empty method', '{"jsonrpc":"2.0","id":1,"method":""}', 'request', 1, ''],
    [
      'an escaped method and version',
      '{"jsonrpc":"2\\u002e0","id":1,"method":"to\\u006fls\\/list"}',
      'request',
      1,
      'tools/list',
    ],
    ['escaped keys', '{"json\\u0072pc":"2.0","\\u0069d":1,"meth\\u006fd":"m"}', 'request', 1, 'm'],
    ['white space around', ' \r\n{"jsonrpc":"2.0","id":1,"method":"m"}\n', 'request', 1, 'm'],
  ] as const)('reads %s', (_, text, kind, id, method) => {
    expect(readGood(text)).toMatchObject({ kind, id, method, isModern: false, text: expect.any(Buffer) });
  });

  it.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty'])(
    '[S18] reads the method %s like any other',
    (name) => {
      expect(readGood(`{"jsonrpc":"2.0","id":1,"method":"${name}","params":{"${name}":1}}`)).toMatchObject({
        method: name,
      });
      expect(readGood(`{"jsonrpc":"2.0","id":"${name}","method":"m"}`)).toMatchObject({ kind: 'request', id: name });
    },
  );

  it('keeps the text: the same memory, and for a part of a batch exactly its part', () => {
    const bytes = Buffer.from('[ {"jsonrpc":"2.0","id":1,"method":"a"} ,\n{"jsonrpc":"2.0","method":"b"}]');
    const body = readBody(bytes, 100);
    const texts = body.ok ? body.messages.map((found) => found.ok && found.message.text) : [];
    expect(texts.map(String)).toEqual(['{"jsonrpc":"2.0","id":1,"method":"a"}', '{"jsonrpc":"2.0","method":"b"}']);
    expect(texts.every((text) => text !== false && text.buffer === bytes.buffer)).toBe(true);
    const single = Buffer.from(request(''));
    const alone = readBody(single, 100);
    expect(alone.ok && alone.messages[0]?.ok && alone.messages[0].message.text).toBe(single);
  });
});

describe('readBody refuses', () => {
  it.each([
    ['nothing', ''],
    ['blanks', ' \n'],
    ['truncated JSON', '{"jsonrpc":"2.0","id":1,'],
    ['two messages', `${request('')}\n${request('')}`],
    ['a byte order mark', `\ufeff${request('')}`],
  ])('[B01] [R7.05] %s as no JSON', (_, text) => {
    expect(readBody(Buffer.from(text), 100)).toEqual({ ok: false, reason: 'not_json' });
  });

  it('[B01] invalid UTF-8, also where nobody would look', () => {
    const bytes = Buffer.from(request('"x":"?"'));
    bytes[bytes.indexOf('?')] = 0xff;
    expect(readBody(bytes, 100)).toEqual({ ok: false, reason: 'not_json' });
  });

  it.each([
    ['a string', '"hello"', null],
    ['a number', '42', null],
    ['null', 'null', null],
    ['true', 'true', null],
    ['no jsonrpc', '{"id":7,"method":"m"}', 7],
    ['jsonrpc 1.0', '{"jsonrpc":"1.0","id":7,"method":"m"}', 7],
    ['jsonrpc as a number', '{"jsonrpc":2.0,"id":"x","method":"m"}', 'x'],
    ['an empty object', '{}', null],
    ['an id alone', '{"jsonrpc":"2.0","id":7}', 7],
    ['result and error', '{"jsonrpc":"2.0","id":7,"result":{},"error":{"code":1,"message":"m"}}', 7],
    ['method and result', '{"jsonrpc":"2.0","id":7,"method":"m","result":{}}', 7],
    ['method and error', '{"jsonrpc":"2.0","id":7,"method":"m","error":{}}', 7],
    ['a result without id', '{"jsonrpc":"2.0","result":{}}', null],
    ['a method that is a number', '{"jsonrpc":"2.0","id":7,"method":1}', 7],
    ['a method that is null', '{"jsonrpc":"2.0","id":7,"method":null}', 7],
    ['Method', '{"jsonrpc":"2.0","id":7,"Method":"m"}', 7],
    ['METHOD beside a result', '{"jsonrpc":"2.0","METHOD":"m"}', null],
    ['JSONRPC', '{"JSONRPC":"2.0","id":7,"method":"m"}', 7],
    ['a long s in jsonrpc', '{"j\u017fonrpc":"2.0","id":7,"method":"m"}', 7],
    ['a Kelvin sign for k', '{"jsonrpc":"2.0","id":7,"\u212aey":1}', 7],
    ['params in a list', '{"jsonrpc":"2.0","id":7,"method":"m","params":[1]}', 7],
    ['params that are a string', '{"jsonrpc":"2.0","id":7,"method":"m","params":"x"}', 7],
    ['params that are a number', '{"jsonrpc":"2.0","id":7,"method":"m","params":0}', 7],
    ['params that are true', '{"jsonrpc":"2.0","id":7,"method":"m","params":true}', 7],
    ['an error whose id cannot be one', '{"jsonrpc":"2.0","id":{},"method":"m","params":[]}', null],
  ])('[B02] [A08] [R9.04] %s as no JSON-RPC, with the id if it can be read', (_, text, id) => {
    expect(read(text)).toEqual(refused('not_json_rpc', id));
  });

  it('[S18] params that only look like an object by their prototype', () => {
    expect(read('{"jsonrpc":"2.0","id":1,"__proto__":{"method":"m"}}')).toEqual(refused('not_json_rpc', 1));
  });

  it('[S-02] refuses a response whose error is null, and takes any other error as it is', () => {
    expect(read('{"jsonrpc":"2.0","id":1,"error":null}')).toEqual(refused('not_json_rpc', 1));
    expect(read('{"jsonrpc":"2.0","id":1,"error": null }')).toEqual(refused('not_json_rpc', 1));
    for (const error of ['{}', '"no"', '0', '[]', '{"code":1,"message":"m"}'])
      expect(read(`{"jsonrpc":"2.0","id":1,"error":${error}}`)).toMatchObject({ ok: true });
  });

  it('[A08] Params and PARAMS are not params: what is in them is not looked at', () => {
    const text =
      '{"jsonrpc":"2.0","method":"notifications/cancelled","Params":{"requestId":1},"param\u017f":{"requestId":2}}';
    expect(readGood(text)).toMatchObject({ kind: 'notification', cancels: undefined });
  });

  it.each([
    ['in the message', '{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}'],
    ['after unescaping', '{"jsonrpc":"2.0","id":1,"\\u0069d":2,"method":"m"}'],
    ['in params', '{"jsonrpc":"2.0","id":1,"method":"m","params":{"name":"a","name":"b"}}'],
    [
      'in params._meta',
      '{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"progressToken":1,"progressToken":2}}}',
    ],
  ])('[B04] a duplicate key %s', (_, text) => {
    expect(readBody(Buffer.from(text), 100)).toEqual({ ok: false, reason: 'duplicate_key' });
  });

  it('[B04] JSON of a client that is too deep', () => {
    const limits = { maxBatch: 10, maxMembers: 10, foldsKeys: true };
    const nested = (count: number) =>
      `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":${'['.repeat(count)}${']'.repeat(count)}}}`;
    expect(readBody(Buffer.from(nested(98)), 100, limits)).toMatchObject({ ok: true });
    expect(readBody(Buffer.from(nested(99)), 100, limits)).toEqual({ ok: false, reason: 'too_deep' });
  });

  it('takes params that are null for absent', () => {
    expect(readGood(request('"params":null'))).toMatchObject({ kind: 'request', progressToken: undefined });
    expect(readGood('{"jsonrpc":"2.0","method":"notifications/cancelled","params":null}').cancels).toBeUndefined();
  });
});

describe('readBody and ids', () => {
  it.each([
    ['0', 0],
    ['1', 1],
    ['-1', -1],
    ['-0', -0],
    ['9007199254740991', 2 ** 53 - 1],
    ['-9007199254740991', -(2 ** 53 - 1)],
    ['1.0', 1],
    ['1e2', 100],
    ['""', ''],
    ['"0"', '0'],
    ['"1"', '1'],
    ['"null"', 'null'],
    ['"a b\\n\\u0041€🌍"', 'a b\nA€🌍'],
    ['"\\ud800"', '\ud800'],
    [`"${'x'.repeat(256)}"`, 'x'.repeat(256)],
    [`"${'€'.repeat(256)}"`, '€'.repeat(256)],
    [`"${'\\u0041'.repeat(256)}"`, 'A'.repeat(256)],
  ])('[R7.03] takes the id %s with its value and type', (text, id) => {
    const message = readGood(`{"jsonrpc":"2.0","id":${text},"method":"m"}`);
    expect(message.kind).toBe('request');
    expect(message.id).toBe(id);
    expect(readGood(`{"jsonrpc":"2.0","id":${text},"result":{}}`).id).toBe(id);
  });

  it.each([
    ['null', 'null'],
    ['true', 'true'],
    ['false', 'false'],
    ['an object', '{}'],
    ['an object with a value', '{"id":1}'],
    ['a list', '[1]'],
    ['a fraction', '1.5'],
    ['a small fraction', '1e-1'],
    ['2^53', '9007199254740992'],
    ['-2^53', '-9007199254740992'],
    ['what rounds to a safe integer only in floating point', '9007199254740993'],
    ['a very large integer', '1'.repeat(400)],
    ['a number over the range', '1e400'],
    ['a longer number', '1'.repeat(10_000)],
    ['257 characters', `"${'x'.repeat(257)}"`],
    ['257 escapes', `"${'\\u0041'.repeat(257)}"`],
    ['a very long string', `"${'x'.repeat(100_000)}"`],
  ])('[B04] refuses a request with an id that is %s', (_, id) => {
    expect(read(`{"jsonrpc":"2.0","id":${id},"method":"m"}`)).toEqual(refused('bad_id'));
  });

  it.each(['{}', '1.5', '9007199254740992', 'true', '[]'])('[B04] refuses a response with the id %s', (id) => {
    expect(read(`{"jsonrpc":"2.0","id":${id},"result":{}}`)).toEqual(refused('bad_id'));
  });

  it('[R7.03] any safe integer and any string of at most 256 characters is what JSON.parse makes of it', () => {
    const ids = fc.oneof(
      fc.maxSafeInteger(),
      fc.string({ unit: 'binary', maxLength: 256 }).filter((text) => text.length <= 256),
    );
    fc.assert(
      fc.property(ids, (id) => {
        expect(readGood(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"method":"m"}`).id).toBe(id);
      }),
    );
  });
});

describe('readBody and what routing looks for', () => {
  it.each([
    ['of a request', request('"params":{"_meta":{"progressToken":"t"}}'), 't'],
    ['of a request, as a number', request('"params":{"_meta":{"progressToken":0}}'), 0],
    ['of a request, negative', request('"params":{"_meta":{"progressToken":-5}}'), -5],
    ['of a request, 2^53-1', request('"params":{"_meta":{"progressToken":9007199254740991}}'), 2 ** 53 - 1],
    ['of a request, __proto__', request('"params":{"_meta":{"progressToken":"__proto__"}}'), '__proto__'],
    ['of a request, by escapes', request('"param\\u0073":{"_m\\u0065ta":{"progressTok\\u0065n":"\\u0074"}}'), 't'],
    ['of a request, not in params', request('"params":{"progressToken":"t"}'), undefined],
    ['of a request, not beside params', request('"_meta":{"progressToken":"t"}'), undefined],
    ['of a request, not deeper', request('"params":{"a":{"_meta":{"progressToken":"t"}}}'), undefined],
    ['of a request, not null', request('"params":{"_meta":{"progressToken":null}}'), undefined],
    ['of a request, not an object', request('"params":{"_meta":{"progressToken":{}}}'), undefined],
    ['of a request, not a fraction', request('"params":{"_meta":{"progressToken":1.5}}'), undefined],
    ['of a request, where _meta is a list', request('"params":{"_meta":["progressToken"]}'), undefined],
    ['of a request, where _meta is null', request('"params":{"_meta":null}'), undefined],
    ['of a progress notification', notification('notifications/progress', '{"progressToken":"t","progress":1}'), 't'],
    [
      'of a progress notification, as a number',
      notification('notifications/progress', '{"progress":1,"progressToken":7}'),
      7,
    ],
    [
      'of a progress notification, not its _meta',
      notification('notifications/progress', '{"_meta":{"progressToken":1}}'),
      undefined,
    ],
    ['of another notification', notification('notifications/message', '{"progressToken":"t"}'), undefined],
  ])('[R7.03] the progress token %s', (_, text, token) => {
    expect(readGood(text).progressToken).toBe(token);
  });

  it.each([
    ['a number', notification('notifications/cancelled', '{"requestId":5,"reason":"x"}'), 5],
    ['a string', notification('notifications/cancelled', '{"requestId":"5"}'), '5'],
    ['zero', notification('notifications/cancelled', '{"requestId":0}'), 0],
    ['nothing', notification('notifications/cancelled', '{}'), undefined],
    ['null', notification('notifications/cancelled', '{"requestId":null}'), undefined],
    ['an object', notification('notifications/cancelled', '{"requestId":{"a":1}}'), undefined],
    ['by another notification', notification('notifications/x', '{"requestId":5}'), undefined],
    ['by an escaped method', '{"jsonrpc":"2.0","method":"notifications\\/cancelled","params":{"requestId":5}}', 5],
  ])('the request that is cancelled: %s', (_, text, id) => {
    expect(readGood(text).cancels).toBe(id);
  });

  it.each([
    ['in params', request('"params":{"taskId":"a"}'), 'a'],
    ['in the related task', request('"params":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"b"}}}'), 'b'],
    [
      'in the related task before params',
      request('"params":{"taskId":"a","_meta":{"io.modelcontextprotocol/related-task":{"taskId":"b"}}}'),
      'b',
    ],
    [
      'in no related task of another shape',
      request('"params":{"_meta":{"io.modelcontextprotocol/related-task":"b"}}'),
      undefined,
    ],
    [
      'in no related task that is null',
      request('"params":{"_meta":{"io.modelcontextprotocol/related-task":null}}'),
      undefined,
    ],
    ['that is no string', request('"params":{"taskId":1}'), undefined],
    [
      'in a related task, no string',
      request('"params":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":1}}}'),
      undefined,
    ],
    [
      'by a prototype',
      request('"params":{"_meta":{"io.modelcontextprotocol/related-task":{"__proto__":{"taskId":"x"}}}}'),
      undefined,
    ],
  ])('the task: %s', (_, text, taskId) => {
    expect(readGood(text).taskId).toBe(taskId);
  });

  it.each([
    ['500,000 keys', `{${Array.from({ length: 500_000 }, (_, index) => `"k${index}":0`).join()},"taskId":"x"}`],
    ['a million levels', '['.repeat(1_000_000) + ']'.repeat(1_000_000)],
    ['a string of 4 MiB', `{"taskId":"${'x'.repeat(4 * 1024 * 1024)}"}`],
  ])('[C-05] [S-05] [S-06] nothing is built of a related task with %s', (_, value) => {
    const text = Buffer.from(request(`"params":{"_meta":{"io.modelcontextprotocol/related-task":${value}}}`));
    const parse = vi.spyOn(JSON, 'parse');
    const body = readBody(text, Number.POSITIVE_INFINITY);
    const built = parse.mock.calls.length;
    parse.mockRestore();
    expect(built).toBe(0);
    expect(body.ok && body.messages[0]).toMatchObject({ ok: true, message: { taskId: undefined } });
  });

  it('[S-05] no method and no member is built that is longer than 64 KiB, or has members', () => {
    const long = 'm'.repeat(64 * 1024 + 1);
    const body = readBody(Buffer.from(`{"jsonrpc":"2.0","method":"${long}"}`), 100);
    expect(body.ok && body.messages[0]).toMatchObject({ ok: false, reason: 'not_json_rpc' });
    const message = readGood(request(`"params":{"a":"${long}","b":{},"c":[1],"d":"x","e":1}`));
    expect(['a', 'b', 'c', 'd', 'e', 'f'].map((key) => memberValue(message, 'params', key))).toEqual([
      ...[undefined, undefined, undefined, 'x', 1, undefined],
    ]);
  });

  it('[C-13] a text that was read before is refused to whoever allows less', () => {
    const members = Array.from({ length: 5_000 }, (_, index) => `"k${index}":0`).join();
    const text = Buffer.from(`{"jsonrpc":"2.0","method":"m","params":{${members}}}`);
    const strict = { maxBatch: 100, maxMembers: 4_096, foldsKeys: true };
    expect(readBody(text, 100).ok).toBe(true);
    expect(readBody(text, 100, strict)).toEqual({ ok: false, reason: 'too_many_members' });
    const folded = Buffer.from('{"jsonrpc":"2.0","method":"m","Method":"n"}');
    expect(readBody(folded, 100).ok).toBe(true);
    expect(readBody(folded, 100, strict)).toEqual({ ok: false, reason: 'duplicate_key' });
    expect(readBody(folded, 100).ok).toBe(true);
  });

  it('a related task that is deeply nested costs no stack', () => {
    const nested = '['.repeat(200_000) + ']'.repeat(200_000);
    const text = request(`"params":{"_meta":{"io.modelcontextprotocol/related-task":${nested}}}`);
    const body = readBody(Buffer.from(text), Number.POSITIVE_INFINITY);
    expect(body.ok && body.messages[0]).toMatchObject({ ok: true, message: { taskId: undefined } });
  });

  it.each([
    ['a request', request('"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}'), true],
    [
      'a request by escapes',
      request('"params":{"_meta":{"io.modelcontextprotocol\\/protocolVersion":"2026-07-28"}}'),
      true,
    ],
    ['a notification', notification('n', '{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}'), true],
    [
      'a request whose params have it',
      request('"params":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}'),
      false,
    ],
    ['an initialize of the legacy era', request('"params":{"protocolVersion":"2025-11-25"}'), false],
  ])('[B13] the modern era: %s', (_, text, isModern) => {
    expect(readGood(text).isModern).toBe(isModern);
  });
});

describe('readBody and batches', () => {
  it('[B03] [R7.02] reads each message of an array, the wrong ones too', () => {
    const texts = [
      request(''),
      notification('n', '{}'),
      '{"jsonrpc":"2.0","id":2,"result":{}}',
      '1',
      '{"id":3}',
      '[]',
      'null',
    ];
    const body = readBody(Buffer.from(`[${texts.join(' , ')}]`), 100);
    expect(body).toMatchObject({ ok: true, batch: true });
    expect(body.ok && body.messages.map((found) => (found.ok ? found.message.kind : found))).toEqual([
      'request',
      'notification',
      'response',
      refused('not_json_rpc'),
      refused('not_json_rpc', 3),
      refused('not_json_rpc'),
      refused('not_json_rpc'),
    ]);
  });

  it('[B03] an empty array is a batch without messages', () => {
    expect(readBody(Buffer.from(' [ ] '), 100)).toEqual({ ok: true, batch: true, messages: [] });
  });

  it('what one message has does not stick to the next', () => {
    const modern = request(
      '"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"x","progressToken":1},"taskId":"t"}',
    );
    const body = readBody(Buffer.from(`[${modern},${request('')}]`), 100);
    const second = body.ok ? body.messages[1] : undefined;
    expect(second).toMatchObject({
      ok: true,
      message: { isModern: false, progressToken: undefined, taskId: undefined },
    });
  });
});

describe('readBody on anything', () => {
  const anyValue = fc.anything({ withNullPrototype: false, maxDepth: 3 });
  const looksLikeMessage = fc.record(
    {
      jsonrpc: fc.oneof({ weight: 4, arbitrary: fc.constant('2.0') }, anyValue),
      id: fc.oneof(fc.integer(), fc.string(), anyValue),
      method: fc.oneof(fc.constantFrom('initialize', 'notifications/cancelled', 'notifications/progress'), anyValue),
      params: fc.oneof(
        fc.record({ requestId: anyValue, progressToken: anyValue, taskId: anyValue, _meta: anyValue }),
        anyValue,
      ),
      result: anyValue,
      error: anyValue,
    },
    { requiredKeys: [] },
  );

  it('[S18] never throws, and what it takes for a message is one by JSON.parse too', () => {
    fc.assert(
      fc.property(looksLikeMessage, (value) => {
        const text = JSON.stringify(value, (_, inner) => (typeof inner === 'bigint' ? Number(inner) : inner));
        const found = read(text);
        const parsed = JSON.parse(text);
        if (!found.ok) return;
        expect(parsed.jsonrpc).toBe('2.0');
        expect(found.message.method).toBe(parsed.method);
        expect(found.message.id).toBe(parsed.id);
        expect(found.message.kind).toBe(
          'method' in parsed ? ('id' in parsed ? 'request' : 'notification') : 'response',
        );
      }),
      { numRuns: 1_000 },
    );
  });
});
