import { expect, it } from 'vitest';
import { readGatewayMessage } from '../../../src/core/protocol/message/message.ts';
import { unwrapCall } from '../../../src/features/tool-search/unwrap-call.ts';

const unwrap = (params: string, method = 'tools/call') =>
  unwrapCall(readGatewayMessage(Buffer.from(`{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}`)));

it('[P1] a call through the other tool becomes its own, with the text of its arguments', () => {
  const own = unwrap(
    '{"arguments":{"arguments":{"n":12345678901234567890},"name":"a\\u0062"},"name":"call_tool","_meta":{"x":1}}',
  );
  expect(own?.name).toBe('ab');
  expect(own?.message.text.toString()).toBe(
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{"n":12345678901234567890},"name":"ab","_meta":{"x":1}}}',
  );
  expect(unwrap('{"name":"call_tool","arguments":{"name":"x"}}')?.message.text.toString()).toContain('"arguments":{}');
});

it.each([
  ['another tool', '{"name":"echo","arguments":{"name":"x"}}'],
  ['no arguments', '{"name":"call_tool"}'],
  ['no name', '{"name":"call_tool","arguments":{}}'],
  ['a name that is no text', '{"name":"call_tool","arguments":{"name":["x"]}}'],
  ['two names', '{"name":"call_tool","arguments":{"name":"x","name":"y"}}'],
  ['itself', '{"name":"call_tool","arguments":{"name":"call_tool"}}'],
  ['arguments that are no object', '{"name":"call_tool","arguments":{"name":"x","arguments":"{}"}}'],
  ['arguments twice', '{"name":"call_tool","arguments":{"name":"x","arguments":{},"arguments":{}}}'],
])('a message with %s stays as it is', (_, params) => {
  expect(unwrap(params)).toBeUndefined();
});

it('only calls are read', () => {
  expect(unwrap('{"name":"call_tool","arguments":{"name":"x"}}', 'prompts/get')).toBeUndefined();
});
