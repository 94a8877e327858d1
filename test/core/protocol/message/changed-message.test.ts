import { describe, expect, it } from 'vitest';
import { changedMessage, detachedMessage, withId } from '../../../../src/core/protocol/message/changed-message.ts';
import { createFaultResponse, readGatewayFault } from '../../../../src/core/protocol/message/gateway-fault.ts';
import { rescanMembers } from '../../../../src/core/protocol/message/member-ranges.ts';
import { cancelled, type Message, readBody } from '../../../../src/core/protocol/message/message.ts';
import { readMessage } from '../../../support/fake-backend.ts';
import { fieldsInText, routingFields } from '../../../support/routing-fields.ts';

describe('a message under another id', () => {
  it.each([
    ['a request', '{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"progressToken":2},"x":1e400}}'],
    ['a result', '{"result":{"id":1},"jsonrpc":"2.0","id":1}'],
    ['an error', '{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}'],
  ])('[P1] differs only in the id: %s', (_, text) => {
    for (const id of [7, 'a"b']) {
      const renamed = withId(readMessage(text), id);
      const at = text.lastIndexOf('"id":1');
      expect(renamed.text.toString()).toBe(`${text.slice(0, at)}"id":${JSON.stringify(id)}${text.slice(at + 6)}`);
      expect(renamed.id).toBe(id);
      expect(routingFields(renamed)).toEqual(fieldsInText(renamed));
      expect(rescanMembers(renamed.text)).toMatchObject(renamed.memberRanges);
    }
  });

  it('knows where its members are, also as one of a batch', () => {
    const batch = '[{"jsonrpc":"2.0","method":"n"}, {"params":{"a":1},"id":123,"jsonrpc":"2.0","method":"m"} ]';
    const read = readBody(Buffer.from(batch), 10);
    const message = read.ok && read.messages[1]?.ok ? read.messages[1].message : undefined;
    const renamed = message && withId(message, 'a longer id');
    expect(rescanMembers((renamed as Message).text)).toMatchObject((renamed as Message).memberRanges);
    expect(withId(withId(message as Message, 'a longer id'), 1).text.toString()).toContain('"id":1,');
  });
});

describe('messages of the gateway itself', () => {
  it('cancel a request for a reason', () => {
    const message = cancelled('a', 'It took too long.');
    expect(JSON.parse(message.text.toString())).toEqual({
      jsonrpc: '2.0',
      method: 'notifications/cancelled',
      params: { requestId: 'a', reason: 'It took too long.' },
    });
    expect(message.cancels).toBe('a');
  });

  it('answer a request with a fault, which can be read again', () => {
    const response = createFaultResponse('server_busy', 'a');
    expect(response).toMatchObject({ kind: 'response', id: 'a', isError: true });
    expect(readGatewayFault(response)).toEqual({ reason: 'server_busy', data: {} });
  });
});

describe('a copy of a message', () => {
  it('[P8] keeps no larger buffer in memory, and has the same fields', () => {
    const body = Buffer.alloc(64 * 1024, ' ');
    body.write('{"jsonrpc":"2.0","id":1,"method":"m"}', 1_000);
    const message = changedMessage(
      readMessage('{"jsonrpc":"2.0","id":1,"method":"m"}'),
      body.subarray(1_000, 1_037),
      {},
    );
    const copy = detachedMessage(message);
    expect(copy.text.toString()).toBe(message.text.toString());
    expect(copy.text.buffer).not.toBe(body.buffer);
    expect(routingFields(copy)).toEqual(fieldsInText(copy));
  });
});
