import { createServer, type Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { matchAnswers } from '../../src/core/backend/answers/match-answers.ts';
import { linkBackends } from '../../src/core/backend/link/link.ts';
import { openSocket } from '../../src/features/remote/socket/socket-backend.ts';
import { listening } from '../core/backend/local-servers.ts';
import { openBackend } from '../core/backend/open-backend.ts';
import { waitFor } from '../support/wait-for.ts';
import { writingServers } from '../support/writing-servers.ts';

/** The id of the call. The server's answer is a text in Latin-1, so that every byte can be written. */
const id = 7;
const sound = '{"jsonrpc":"2.0","id":7,"result":{"a":"x"}}';
const result = { jsonrpc: '2.0', id, result: { a: 'x' } };
const bad = (problem: string) => ({ id, error: { data: { reason: 'bad_response', problem } } });
const failed = { id, error: { code: -5, message: 'boom' } };

/** What a server writes, and the message that the client gets. */
const answers: readonly (readonly [what: string, written: string, expected: object])[] = [
  ['a byte that is not UTF-8', sound.replace('x', 'caf\xe9'), { id, result: { a: 'caf\ufffd' } }],
  ['a byte order mark', `\xef\xbb\xbf${sound}`, result],
  ['two byte order marks', `\xef\xbb\xbf\xef\xbb\xbf${sound}`, result],
  ['the id as text', sound.replace('7', '"7"'), result],
  ['the id as text with a fraction', sound.replace('7', '"7.0"'), result],
  ['the id with a fraction', sound.replace('7', '7.0'), result],
  ['an error that is null', sound.replace('}}', '},"error":null}'), result],
  ['an error that is null, first', sound.replace('{', '{"error":null,'), result],
  [
    'a result that is null beside an error',
    '{"jsonrpc":"2.0","id":7,"result":null,"error":{"code":-5,"message":"boom"}}',
    failed,
  ],
  [
    'an error that is a text',
    '{"jsonrpc":"2.0","id":7,"error":"boom"}',
    { id, error: { code: -32603, message: 'boom' } },
  ],
  [
    'an error without a code',
    '{"jsonrpc":"2.0","id":7,"error":{"message":"boom","data":[1]}}',
    { id, error: { code: -32603, message: 'boom', data: [1] } },
  ],
  [
    'an error without a message',
    '{"jsonrpc":"2.0","id":7,"error":{"code":-5}}',
    { id, error: { code: -5, message: expect.any(String) } },
  ],
  ['an error with the id null', '{"jsonrpc":"2.0","id":null,"error":{"code":-5,"message":"boom"}}', failed],
  ['params that are null', sound.replace('}}', '},"params":null}'), result],
  ['a method that is null', sound.replace('}}', '},"method":null}'), result],
  [
    'each member that a message can have, with null',
    '{"jsonrpc":"2.0","method":null,"params":null,"id":7,"result":{"a":"x"},"error":null}',
    result,
  ],
  [
    'nulls beside an error',
    '{"method":null,"jsonrpc":"2.0","id":7,"result":null,"error":{"code":-5,"message":"boom"}}',
    failed,
  ],
  ['an error without an id', '{"jsonrpc":"2.0","error":{"code":-5,"message":"boom"}}', failed],
  ['no jsonrpc', '{"id":7,"result":{}}', bad('no jsonrpc')],
  ['no jsonrpc, and the id as text', '{"id":"7","result":{}}', bad('no jsonrpc')],
  ['a number for jsonrpc', '{"jsonrpc":2.0,"id":7,"result":{}}', bad('jsonrpc is not "2.0"')],
  [
    'both members',
    '{"jsonrpc":"2.0","id":7,"result":{},"error":{"code":-5,"message":"boom"}}',
    bad('both result and error'),
  ],
  ['neither member', '{"jsonrpc":"2.0","id":7}', bad('neither result nor error')],
  ['a result that is null', '{"jsonrpc":"2.0","id":7,"result":null}', { id, result: {} }],
  ['a result that is a list', '{"jsonrpc":"2.0","id":7,"result":[]}', bad('the result is not an object')],
  ['NaN', sound.replace('"x"', 'NaN'), bad('not JSON')],
  ['NaN, and the id at the end', '{"result":{"a":NaN},"id":7,"jsonrpc":"2.0"}', bad('not JSON')],
  ['a raw tab in a string', sound.replace('x', 'a\tb'), bad('not JSON')],
  ['half of the answer', sound.slice(0, -6), bad('not JSON')],
  ['a key twice', sound.replace('{', '{"jsonrpc":"2.0",'), bad('a key twice')],
  ['text before it', `Loading… ${sound}`, bad('text before the JSON')],
  ['text with braces before it', `{x} [INFO] {"level":1} ${sound}`, bad('text before the JSON')],
  ['a log line in brackets before it', `[INFO] ${sound}`, bad('text before the JSON')],
  ['text behind it', `${sound} done`, bad('text after the JSON')],
  [
    'a large answer with NaN',
    `{"jsonrpc":"2.0","id":7,"result":{"b":"${'b'.repeat(600_000)}","a":NaN}}`,
    bad('not JSON'),
  ],
  [
    'a large answer that is not UTF-8',
    `{"result":{"a":"\xe9${'b'.repeat(600_000)}"},"jsonrpc":"2.0","id":7}`,
    { id, result: { a: `\ufffd${'b'.repeat(600_000)}` } },
  ],
];

const call = (callId: number | string) => ({ jsonrpc: '2.0', id: callId, method: 'tools/call', params: { name: 'x' } });

describe.each(Object.entries(writingServers))('[P3] [R6.03] the answer of a server on %s', (_, open) => {
  it.each(answers)('with %s reaches its call', async (_what, written, expected) => {
    const { send, messages, unanswered } = openBackend(
      linkBackends(await open({ texts: [Buffer.from(written, 'latin1')] }), [matchAnswers]),
    );
    send(call(id));
    expect(JSON.parse(await messages.next())).toMatchObject(expected);
    expect(unanswered.items).toEqual([]);
  });
});

/** A server on TCP whose answers the test writes. */
async function openLines() {
  const received: string[] = [];
  let peer: Socket | undefined;
  const server = createServer((socket) => {
    peer = socket
      .on('error', () => undefined)
      .on('data', (chunk) => void received.push(...chunk.toString().split('\n')));
  });
  const port = await listening(server);
  const opened = openBackend(
    linkBackends((events) => openSocket({ address: { host: '127.0.0.1', port } }, events), [matchAnswers]),
  );
  const write = (...lines: (object | string)[]): void =>
    void peer?.write(lines.map((line) => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`).join(''));
  return {
    ...opened,
    write,
    received,
    arrival: () =>
      waitFor(() => received.some((line) => line.includes('"last"')), { what: 'all messages at the server' }),
  };
}

const last = { jsonrpc: '2.0', method: 'notifications/message', params: { data: 'last' } };
const answerTo = (callId: unknown, a: string) => ({ jsonrpc: '2.0', id: callId, result: { a } });
const idsAndResults = (messages: readonly string[]) =>
  messages.map((text) => JSON.parse(text)).map(({ id: of, result: value, error }) => [of, value?.a ?? error?.message]);

describe('[P2] [P3] which call an odd answer belongs to', () => {
  it('is the one with exactly this id, before the one with the other JSON type', async () => {
    const { send, messages, write, arrival } = await openLines();
    for (const each of [call('7'), call(7), last]) send(each);
    await arrival();
    write(answerTo('7', 'text'), answerTo('7', 'number'), answerTo('7', 'nobody'), last);
    await waitFor(() => messages.items.length === 4, { what: 'all messages' });
    expect(idsAndResults(messages.items.slice(0, 3))).toEqual([
      ['7', 'text'],
      [7, 'number'],
      ['7', 'nobody'], // its receiver knows of no such call
    ]);
  });

  it('is none, if the id is null and two are open', async () => {
    const { send, messages, write, arrival } = await openLines();
    for (const each of [call(1), call(2), last]) send(each);
    await arrival();
    write({ jsonrpc: '2.0', id: null, error: { code: -5, message: 'boom' } }, answerTo(1, 'one'), answerTo(2, 'two'));
    await waitFor(() => messages.items.length === 3, { what: 'all messages' });
    expect(idsAndResults(messages.items)).toEqual([
      [null, 'boom'],
      [1, 'one'],
      [2, 'two'],
    ]);
  });

  it('is the one that nobody has cancelled, if the id is null', async () => {
    const { send, messages, write, arrival } = await openLines();
    const cancel = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } };
    for (const each of [call(1), call(2), cancel, last]) send(each);
    await arrival();
    write({ jsonrpc: '2.0', id: null, error: { code: -5, message: 'boom' } });
    expect(idsAndResults([await messages.next()])).toEqual([[2, 'boom']]);
  });

  it('is none, if the error says that the method of a notification is unknown', async () => {
    const { send, messages, write, arrival } = await openLines();
    for (const each of [last, call(1)]) send(each);
    await arrival();
    const unknown = { jsonrpc: '2.0', id: null, error: { code: -32601, message: 'Method not found' } };
    write(unknown, answerTo(1, 'one'));
    await waitFor(() => messages.items.length === 2, { what: 'both messages' });
    expect(idsAndResults(messages.items)).toEqual([
      [null, 'Method not found'],
      [1, 'one'],
    ]);
  });

  it('is answered by the message itself, if a log line with the same text came before', async () => {
    const { send, messages, write, arrival } = await openLines();
    for (const each of [call(1), last]) send(each);
    await arrival();
    const text = JSON.stringify(answerTo(1, 'one'));
    write(`DEBUG sending ${text}`, text);
    expect(idsAndResults([await messages.next()])).toEqual([[1, 'one']]);
  });
});

describe('[P3] a message of a server that is no answer, with null for members that it does not have', () => {
  it.each([
    [
      'request',
      '{"jsonrpc":"2.0","id":1,"method":"ping","params":{},"result":null,"error":null}',
      { id: 1, method: 'ping', params: {} },
    ],
    [
      'notification',
      '{"id":null,"jsonrpc":"2.0","method":"notifications/x","params":{},"result":null,"error":null}',
      { method: 'notifications/x', params: {} },
    ],
    ['request without params', '{"jsonrpc":"2.0","id":1,"method":"ping","params":null}', { id: 1, method: 'ping' }],
  ])('is a %s', async (_, written, expected) => {
    const { send, write, messages, arrival } = await openLines();
    send(last);
    await arrival();
    write(written);
    expect(JSON.parse(await messages.next())).toEqual({ jsonrpc: '2.0', ...expected });
  });
});

describe('[P3] a request of a server that is no valid message', () => {
  it.each([
    ['a fraction as id', '{"jsonrpc":"2.0","id":1.5,"method":"ping"}', 1.5],
    ['an object as id', '{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}', { a: 1 }],
    ['a large number as id', '{"jsonrpc":"2.0","id":1e300,"method":"ping"}', 1e300],
    ['a long id', `{"jsonrpc":"2.0","id":"${'i'.repeat(257)}","method":"ping"}`, 'i'.repeat(257)],
    ['no jsonrpc', '{"id":1,"method":"ping"}', 1],
    ['params that are a text', '{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}', 1],
    ['NaN', '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":NaN}}', 1],
  ])('with %s is answered with an error', async (_, written, of) => {
    const { send, write, received, arrival } = await openLines();
    send(last);
    await arrival();
    write(written);
    await waitFor(() => received.some((line) => line.includes('"error"')), { what: 'the error' });
    const refusal = received.find((line) => line.includes('"error"')) as string;
    expect(JSON.parse(refusal)).toMatchObject({ jsonrpc: '2.0', id: of, error: { code: -32600 } });
  });
});
