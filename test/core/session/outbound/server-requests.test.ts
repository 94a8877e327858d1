import { describe, expect, it } from 'vitest';
import type { Call } from '../../../../src/core/call/session-calls.ts';
import { requestRefusal } from '../../../../src/core/protocol/message/gateway-fault.ts';
import type { Message } from '../../../../src/core/protocol/message/message.ts';
import { ServerRequests } from '../../../../src/core/session/outbound/server-requests.ts';
import { readMessage } from '../../../support/fake-backend.ts';

const ask = (id: string | number) => readMessage({ jsonrpc: '2.0', id, method: 'roots/list' });
const reply = (id: string | number | null) => readMessage({ jsonrpc: '2.0', id, result: {} });
const cancel = (requestId: string | number) =>
  readMessage({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId, reason: 'r' } });
const parse = (message: Message | undefined) => message && JSON.parse(message.text.toString());
const callWith = (hasStream: boolean): Call => ({ answer: { hasStream } }) as unknown as Call;

describe('the table of server requests', () => {
  it('[P1] passes requests of the first process and their answers unchanged, with the type of their ids', () => {
    const requests = new ServerRequests();
    for (const id of [1, '1', 0, '', -5]) {
      requests.add(ask(id), '', 'get');
      expect(parse(requests.settle(reply(id)))).toEqual({ jsonrpc: '2.0', id, result: {} });
    }
    const message = ask(7);
    expect(requests.add(message, '', 'get')).toBe(message);
    expect(requests.settle(reply('7'))).toBeUndefined();
    const answer = reply(7);
    expect(requests.settle(answer)).toBe(answer);
    expect(requests.settle(answer)).toBeUndefined();
    expect(requests.settle(reply(null))).toBeUndefined();
  });

  it('keeps a call waiting until each of its questions is answered, cancelled or lost with its server', () => {
    const waits: string[] = [];
    const report = { waitsForClient: () => waits.push('asked'), settled: () => waits.push('settled') };
    const call = { ...callWith(true), report } as unknown as Call;
    const requests = new ServerRequests();
    for (const id of [1, 2, 3, 4]) requests.add(ask(id), '', call);
    requests.add(ask(5), '', 'get');
    expect(waits.splice(0)).toEqual(['asked', 'asked', 'asked', 'asked']);
    requests.settle(reply(1));
    requests.settle(reply(1));
    requests.cancelledBy(cancel(2));
    expect(waits.splice(0)).toEqual(['settled', 'settled']);
    requests.cancelAll();
    requests.cancelAll();
    expect(waits).toEqual(['settled', 'settled']);
  });

  it('[F12] gives requests of later processes unused ids, and their answers the original ids', () => {
    const requests = new ServerRequests();
    const seen = new Set<unknown>([7]);
    requests.add(ask(7), '', 'get');
    for (let incarnation = 1; incarnation <= 5; incarnation++) {
      requests.cancelAll();
      for (const own of [7, 'x']) {
        const { id } = parse(requests.add(ask(own), `5-${incarnation}`, 'get'));
        expect(seen.has(id)).toBe(false);
        seen.add(id);
        if (own === 'x') expect(parse(requests.settle(reply(id)))).toEqual({ jsonrpc: '2.0', id: 'x', result: {} });
      }
    }
    for (const id of [7, 'x']) expect(requests.settle(reply(id))).toBeUndefined();
  });

  it('[F12] gives numbers, also to a request whose own id could be one of them, and other ones at each owner', () => {
    const [one, other] = [new ServerRequests(), new ServerRequests()];
    const { id: own } = parse(one.add(ask('x'), '5-1', 'get'));
    const { id } = parse(one.add(ask(own), '', 'get'));
    expect(parse(one.settle(reply(id)))).toEqual({ jsonrpc: '2.0', id: own, result: {} });
    const ids = [own, id, parse(other.add(ask(1), '6-1', 'get')).id];
    expect(new Set(ids).size).toBe(3);
    expect(ids.filter((each) => Number.isInteger(each) && each < 2 ** 31)).toEqual(ids);
  });

  it('[F12] cancels requests of a lost server on their streams, or on the GET stream if those have ended', () => {
    const requests = new ServerRequests();
    const [open, ended] = [callWith(true), callWith(false)];
    requests.add(ask(1), '', open);
    requests.add(ask(2), '', ended);
    requests.add(ask(3), '', 'get');
    requests.add(ask(4), '', 'get');
    requests.settle(reply(4));
    const cancelled = requests.cancelAll();
    expect(
      cancelled.map(({ destination, cancellation: { method, cancels } }) => [destination, method, cancels]),
    ).toEqual([
      [open, 'notifications/cancelled', 1],
      ['get', 'notifications/cancelled', 2],
      ['get', 'notifications/cancelled', 3],
    ]);
    expect(requests.cancelAll()).toEqual([]);
    expect(requests.settle(reply(1))).toBeUndefined();
  });

  it('[P2] passes the server’s cancellation to the request’s stream, under the id that the client knows', () => {
    const requests = new ServerRequests();
    const call = callWith(true);
    requests.add(ask(1), '', call);
    expect(requests.cancelledBy(cancel(1))).toEqual({ destination: call, cancellation: cancel(1) });
    expect(requests.cancelledBy(cancel(1))).toBeUndefined();
    const { id } = parse(requests.add(ask(1), '5-1', call));
    expect(parse(requests.cancelledBy(cancel(1))?.cancellation)).toEqual({
      jsonrpc: '2.0',
      method: 'notifications/cancelled',
      params: { requestId: id, reason: 'r' },
    });
    expect(requests.cancelledBy(ask(1))).toBeUndefined();
  });

  it('[P8] has at most a thousand requests, refuses more, and has room again after an answer', () => {
    const requests = new ServerRequests();
    for (let id = 0; id < 1_000; id++) expect(requests.add(ask(id), '', 'get')).toBeDefined();
    expect(requests.add(ask(1_000), '', 'get')).toBeUndefined();
    expect(parse(requestRefusal(ask(1_000)))).toMatchObject({
      id: 1_000,
      error: { data: { reason: 'server_request_refused' } },
    });
    requests.settle(reply(5));
    expect(requests.add(ask(1_000), '', 'get')).toBeDefined();
  });
});
