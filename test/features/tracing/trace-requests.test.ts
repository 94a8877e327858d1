import type { IncomingHttpHeaders } from 'node:http';
import { context, ROOT_CONTEXT, trace } from '@opentelemetry/api';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { readMessages } from '../../../src/core/protocol/message/read-messages.ts';
import { createMessageBatch } from '../../../src/core/reply/event-batch.ts';
import { accepted, faultAnswer } from '../../../src/core/reply/reply.ts';
import { createRequestTracing } from '../../../src/features/tracing/trace-requests.ts';
import { acceptsBoth, createFakeReply, type FakeReply } from '../../support/fake-reply.ts';
import { registerSpans, shown, traceparentOf } from '../../support/spans.ts';

const spans = registerSpans();
beforeEach(() => spans.reset());
const tracePost = createRequestTracing(spans.tracer)('files', 'http');

/** Reads the messages of a small body. */
function readSmall(body: unknown) {
  const read = readMessages(Buffer.from(JSON.stringify(body)), 100);
  if (read instanceof Promise || !read.ok) throw new Error('the body was refused, or is large');
  return read;
}

function begin(body: unknown, headers: IncomingHttpHeaders = {}) {
  const read = readSmall(body);
  const traced = tracePost(read, headers);
  const plain: FakeReply = createFakeReply(acceptsBoth);
  const { posted = read } = traced ?? {};
  // biome-ignore lint/suspicious/noExplicitAny: a test reads messages of every shape
  const texts: any[] = posted.messages.map(({ text }) => JSON.parse(text.toString()));
  return { traced, posted, texts, reply: traced?.traceReply(plain) ?? plain, plain };
}

const request = (method: string, params?: object, id: number | string = 1) => ({ jsonrpc: '2.0', id, method, params });
const lastSpan = () => {
  const span = spans.ended().at(-1);
  if (span === undefined) throw new Error('no span has ended');
  return span;
};

describe('the span of what a client asks', () => {
  test('begins a trace, and is in _meta of what goes on', () => {
    const { texts, reply } = begin(request('prompts/get', { name: 'letter' }));
    reply.answer({ kind: 'json', text: Buffer.from('{"jsonrpc":"2.0","id":1,"result":{}}') });
    expect(lastSpan().parentSpanContext).toBeUndefined();
    expect(texts[0].params._meta).toEqual({ traceparent: traceparentOf(lastSpan()) });
    expect(shown(lastSpan())).toEqual({
      name: 'prompts/get letter',
      kind: 'SERVER',
      attributes: {
        'mcp.method.name': 'prompts/get',
        'gen_ai.prompt.name': 'letter',
        'mcp_gangway.server': 'files',
        'network.transport': 'tcp',
        'network.protocol.name': 'http',
      },
      isError: false,
    });
  });

  test('says what logs call the request', () => {
    tracePost(readSmall(request('tools/list')), {}, 'its id')
      ?.traceReply(createFakeReply(acceptsBoth))
      .answer(accepted);
    expect(lastSpan().attributes['mcp_gangway.request_id']).toBe('its id');
  });

  test('has the parent that headers name, and passes tracestate and baggage on', () => {
    const client = spans.tracer.startSpan('client');
    const headers = { traceparent: traceparentOf(client), tracestate: 'a=1', baggage: 'user=ada' };
    const { texts, reply } = begin(request('tools/list'), headers);
    reply.answer({ kind: 'json', text: Buffer.from('{"jsonrpc":"2.0","id":1,"result":{}}') });
    expect(lastSpan().parentSpanContext?.spanId).toBe(client.spanContext().spanId);
    const traceparent = traceparentOf(lastSpan());
    expect(texts[0].params._meta).toEqual({ traceparent, tracestate: 'a=1', baggage: 'user=ada' });
  });

  test('has the parent that _meta names, and a link to the one of the headers', () => {
    const [message, transport] = [spans.tracer.startSpan('message'), spans.tracer.startSpan('transport')];
    const meta = { _meta: { traceparent: traceparentOf(message) } };
    begin(request('x', meta), { traceparent: traceparentOf(transport) }).reply.answer(accepted);
    expect(lastSpan().parentSpanContext?.spanId).toBe(message.spanContext().spanId);
    expect(lastSpan().links.map(({ context: { spanId } }) => spanId)).toEqual([transport.spanContext().spanId]);
  });

  test('has the span as parent that an instrumentation of HTTP has made of the headers', () => {
    const [http, header] = [spans.tracer.startSpan('http'), spans.tracer.startSpan('header')];
    // An instrumentation makes its span the active one.
    vi.spyOn(context, 'active').mockReturnValue(trace.setSpan(ROOT_CONTEXT, http));
    begin(request('x'), { traceparent: traceparentOf(header) }).reply.answer(accepted);
    vi.restoreAllMocks();
    expect(lastSpan().parentSpanContext?.spanId).toBe(http.spanContext().spanId);
  });

  test('ignores a context that is none', () => {
    const { texts, reply } = begin(request('x', { _meta: { traceparent: '00-0-0-01' } }), { traceparent: 'x' });
    reply.answer(accepted);
    expect(lastSpan().parentSpanContext).toBeUndefined();
    expect(texts[0].params._meta.traceparent).toBe(traceparentOf(lastSpan()));
  });

  test('ends with the answer, whatever that is', async () => {
    begin(request('x')).reply.answer({
      kind: 'json',
      text: Buffer.from('{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"secret"}}'),
    });
    begin(request('x')).reply.answer(faultAnswer('too_many_calls', 1));
    begin(request('x')).plain.leave();
    const streamed = begin(request('x'));
    streamed.reply.stream();
    expect(spans.ended()).toHaveLength(3);
    streamed.plain.sink.end();
    await Promise.resolve(); // a stream is closed in the next step
    const dropped = begin(request('x'));
    dropped.reply.stream();
    dropped.plain.leave();
    expect(spans.ended().map(({ attributes }) => attributes['error.type'])).toEqual([
      '-32601',
      'too_many_calls',
      'client_gone',
      undefined,
      'client_gone',
    ]);
    expect(JSON.stringify(spans.ended().map(({ status, events }) => [status, events]))).not.toContain('secret');
  });

  test('ends with the response in a stream, not with the end of that', () => {
    const { reply } = begin([request('a'), request('b', {}, 'two')]);
    const sink = reply.stream();
    const say = (message: object) =>
      sink.write(createMessageBatch(Buffer.from(JSON.stringify({ jsonrpc: '2.0', ...message }))));
    say({ method: 'notifications/progress', params: { progressToken: 1 } });
    expect(spans.ended()).toEqual([]);
    say({ id: 'two', error: { code: -1, message: 'x' } });
    say({ id: 1, result: {} });
    expect(spans.ended().map(({ name, attributes }) => [name, attributes['error.type']])).toEqual([
      ['b', '-1'],
      ['a', undefined],
    ]);
  });

  test('is one for each request of a batch, and none for what is no request', () => {
    const notification = { jsonrpc: '2.0', method: 'notifications/x' };
    const { texts, reply } = begin([request('a'), notification, request('b', {}, 2)]);
    expect(texts[1]).toEqual(notification);
    reply.answer({
      kind: 'json',
      text: Buffer.from('[{"jsonrpc":"2.0","id":2,"error":{"code":-1}},{"jsonrpc":"2.0","id":1,"result":{}}]'),
    });
    expect(spans.ended().map(({ name, attributes }) => [name, attributes['error.type']])).toEqual([
      ['b', '-1'],
      ['a', undefined],
    ]);
    expect(texts[0].params._meta.traceparent).toBe(traceparentOf(lastSpan()));
    expect(begin(notification).traced).toBeUndefined();
  });

  test('[P1] is not in initialize, which is kept and said again', () => {
    const initialize = request('initialize', { protocolVersion: '2025-11-25' });
    const { texts, posted, reply } = begin(initialize);
    expect(texts).toEqual([initialize]);
    expect(posted.initialize).toBe(posted.messages[0]);
    reply.answer({ kind: 'json', text: Buffer.from('{"jsonrpc":"2.0","id":1,"result":{}}') });
    expect(lastSpan().name).toBe('initialize');
  });

  test('is in the message that the modern face gets', () => {
    const _meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' };
    const { posted } = begin(request('tools/list', { _meta }));
    expect(posted.modern).toBe(posted.messages[0]);
    expect(posted.modern?.isModern).toBe(true);
    expect(posted.modern?.text.toString()).toContain('"traceparent"');
  });
});
