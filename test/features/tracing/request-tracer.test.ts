import { beforeEach, describe, expect, test } from 'vitest';
import type { BackendEnd, BackendEvents, RequestIds } from '../../../src/core/backend/backend.ts';
import { linkBackends } from '../../../src/core/backend/link/link.ts';
import { readForwardedCredentials } from '../../../src/core/protocol/http/forwarded-headers.ts';
import type { Message } from '../../../src/core/protocol/message/message.ts';
import { traceRequests } from '../../../src/features/tracing/request-tracer.ts';
import { asMessage } from '../../support/as-message.ts';
import { createFakeServer } from '../../support/fake-backend.ts';
import { registerSpans, shown, traceparentOf } from '../../support/spans.ts';

const spans = registerSpans();
beforeEach(() => spans.reset());

/** A request in the trace of a client, with these members more in `_meta`. */
function requestOf(method: string, params: object = {}, meta: object = {}, id: string | number = 1) {
  const span = spans.tracer.startSpan('client');
  const _meta = { traceparent: traceparentOf(span), ...meta };
  return { span, text: Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, method, params: { ...params, _meta } })) };
}

function open() {
  const told: (Message | RequestIds | BackendEnd)[] = [];
  const events: BackendEvents = {
    onMessages: (messages) => void told.push(...messages),
    onNoise: () => undefined,
    onUnanswered: (ids) => void told.push(ids),
    onEnd: (end) => void told.push(end),
  };
  const server = createFakeServer();
  const backend = linkBackends(server.open, [traceRequests(spans.tracer, 'files')])(events);
  return { backend, server, told };
}

describe('the span of a request at its server', () => {
  test('is the child of the one in _meta, and the parent of what the server is sent', () => {
    const { backend, server, told } = open();
    const { span, text } = requestOf('tools/call', { name: 'search', arguments: { q: 'secret' } });
    expect(backend.send(asMessage(text), { authorization: 'x' })).toBe('sent');
    const sent = server.backend.sent.items[0];
    expect(spans.ended()).toEqual([]);
    server.backend.says({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 1 } });
    server.backend.says({ jsonrpc: '2.0', id: 1, result: { content: [] } });
    expect(told).toHaveLength(2);
    const [ended, ...others] = spans.ended();
    if (ended === undefined) throw new Error('there is no span');
    expect(others).toEqual([]);
    expect(ended.parentSpanContext?.spanId).toBe(span.spanContext().spanId);
    expect(ended.spanContext().traceId).toBe(span.spanContext().traceId);
    const traceparent = traceparentOf(ended);
    expect(sent.params).toEqual({ name: 'search', arguments: { q: 'secret' }, _meta: { traceparent } });
    expect(server.backend.headers).toEqual([{ authorization: 'x', traceparent }]);
    expect(shown(ended)).toEqual({
      name: 'tools/call search',
      kind: 'CLIENT',
      attributes: {
        'mcp.method.name': 'tools/call',
        'gen_ai.operation.name': 'execute_tool',
        'gen_ai.tool.name': 'search',
        'mcp_gangway.server': 'files',
        'network.transport': 'pipe',
      },
      isError: false,
    });
  });

  test('says how the request ended, and no text of an error (P12)', () => {
    const { backend, server } = open();
    const asked = ['tools/call', 'x/y', 'x/y', 'x/y', 'x/y'].map((method, id) => {
      backend.send(asMessage(requestOf(method, { name: 'a' }, {}, id).text));
      return id;
    });
    expect(asked).toHaveLength(5);
    const cancel = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 3 } };
    server.backend.says({ jsonrpc: '2.0', id: 0, result: { isError: true } });
    server.backend.says({ jsonrpc: '2.0', id: 1, error: { code: -32602, message: 'secret' } });
    server.backend.leaves([2], 'server_unreachable');
    backend.send(asMessage(cancel));
    server.backend.ends({ reason: 'exited' });
    expect(spans.ended().map(({ attributes }) => attributes['error.type'])).toEqual([
      'tool_error',
      '-32602',
      'server_unreachable',
      'cancelled',
      'server_exited',
    ]);
    expect(spans.ended()[1]?.attributes['rpc.response.status_code']).toBe('-32602');
    expect(spans.ended().map(shown)).toEqual(asked.map(() => expect.objectContaining({ isError: true })));
    expect(
      JSON.stringify(spans.ended().map(({ attributes, status, events }) => [attributes, status, events])),
    ).not.toContain('secret');
  });

  test('ends with a backend that is closed, and with one that takes no more', async () => {
    const { backend, server } = open();
    backend.send(asMessage(requestOf('x', {}, {}, 'a').text));
    server.backend.answerToSend = 'full';
    expect(backend.send(asMessage(requestOf('x', {}, {}, 'b').text))).toBe('full');
    await backend.close();
    expect(spans.ended().map(({ attributes }) => attributes['error.type'])).toEqual(['server_busy', 'server_closed']);
  });

  test('[P1] is not made for what belongs to no trace, nor for initialize: their texts pass as they are', () => {
    const { backend, server } = open();
    const plain = { jsonrpc: '2.0', id: 1, method: 'ping', params: { _meta: { traceparent: 'none' } } };
    backend.send(asMessage(plain));
    const initialize = requestOf('initialize', {}, {}, 2).text;
    backend.send(asMessage(initialize));
    const notification = { jsonrpc: '2.0', method: 'notifications/initialized' };
    backend.send(asMessage(notification));
    expect(server.backend.sent.items).toEqual([plain, JSON.parse(initialize.toString()), notification]);
    expect(server.backend.headers).toEqual([undefined, undefined, undefined]);
    server.backend.says({ jsonrpc: '2.0', id: 1, result: {} });
    expect(spans.ended()).toEqual([]);
  });

  test('passes on that its trace is not recorded, and records nothing', () => {
    const { backend, server } = open();
    const unsampled = requestOf('x').text.toString().replace('-01"', '-00"');
    backend.send(asMessage(unsampled));
    expect(server.backend.sent.items[0].params._meta.traceparent).toMatch(/-00$/);
    server.backend.says({ jsonrpc: '2.0', id: 1, result: {} });
    expect(spans.ended()).toEqual([]);
  });

  test('[P11] does not make two clients of one: whose tools are known goes by other headers', () => {
    const key = (traceparent: string, token = 'a') =>
      readForwardedCredentials({ traceparent, baggage: traceparent, authorization: token });
    expect(key('1')).toBe(key('2'));
    expect(key('1')).not.toBe(key('1', 'b'));
    expect(readForwardedCredentials({ traceparent: '1' })).toBe('');
  });
});
