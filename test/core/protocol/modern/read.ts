import { type Message, readBody } from '../../../../src/core/protocol/message/message.ts';

/** A message as the gateway reads it. */
export function read(value: unknown): Message {
  const body = readBody(Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)), 100);
  const [first] = body.ok ? body.messages : [];
  if (first?.ok !== true) throw new Error(`not a message: ${JSON.stringify(value)}`);
  return first.message;
}

/** A request with this `_meta`. */
export const withMeta = (_meta: unknown, params: object = {}, method = 'tools/list'): Message =>
  read({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta } });
