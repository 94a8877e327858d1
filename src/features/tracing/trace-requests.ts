import type { IncomingHttpHeaders } from 'node:http';
import { type Attributes, context, propagation, ROOT_CONTEXT, type Span, type Tracer, trace } from '@opentelemetry/api';
import type { RequestTracing, TraceRequests } from '../../core/http/pipeline/traced-messages.ts';
import { putTraceContext, readTraceContext } from '../../core/protocol/http/trace-context.ts';
import { type Message, readBody } from '../../core/protocol/message/message.ts';
import type { EventBatch } from '../../core/reply/event-batch.ts';
import { ForwardingReply, ForwardingSink } from '../../core/reply/forwarding-reply.ts';
import type { CompleteAnswer, EventSink, Headers, Reply } from '../../core/reply/reply.ts';
import { contain } from '../../core/util/boundary.ts';
import { endWithError, endWithResponse, startCallSpan } from './call-span.ts';

/**
 * Traces client requests: from the end of their reading to the response. If the response comes on another connection,
 * the span ends when the request is accepted. The parent is the context in `params._meta` of the request, else that of
 * its headers. If both have one, the span links to that of the headers (OpenTelemetry GenAI, "MCP", "Context
 * propagation").
 */
export const createRequestTracing =
  (tracer: Tracer): RequestTracing =>
  (server, protocol) =>
    createTracePost(tracer, {
      'mcp_gangway.server': server,
      'network.transport': 'tcp',
      'network.protocol.name': protocol,
    });

function createTracePost(tracer: Tracer, serverAttributes: Attributes): TraceRequests {
  const beginSpan = (
    request: Message,
    headers: IncomingHttpHeaders,
    attributes: Attributes,
  ): { span: Span; request: Message } => {
    const active = context.active();
    // An instrumented HTTP server of Node.js has read the headers already.
    const headerContext = trace.getSpan(active) === undefined ? propagation.extract(active, headers) : active;
    const messageContext = propagation.extract(ROOT_CONTEXT, readTraceContext(request, propagation.fields()));
    const hasMessageContext = trace.getSpanContext(messageContext) !== undefined;
    const linked = hasMessageContext ? trace.getSpanContext(headerContext) : undefined;
    const parent = hasMessageContext ? messageContext : headerContext;
    const links = linked === undefined ? [] : [{ context: linked }];
    const span = startCallSpan({ tracer, request, side: 'client', attributes, parent, links });
    // The `initialize` request is kept, and would be sent again later under this span.
    if (request.method === 'initialize') return { span, request };
    const carrier: Record<string, string> = {};
    propagation.inject(trace.setSpan(parent, span), carrier);
    return { span, request: putTraceContext(request, carrier) };
  };

  return (posted, headers, requestId) => {
    const attributes =
      requestId === undefined ? serverAttributes : { ...serverAttributes, 'mcp_gangway.request_id': requestId };
    const spansByMessage = new Map(
      posted.messages.flatMap((message) =>
        message.kind === 'request' ? [[message, beginSpan(message, headers, attributes)] as const] : [],
      ),
    );
    if (spansByMessage.size === 0) return undefined;
    const withSpan = (message: Message): Message => spansByMessage.get(message)?.request ?? message;
    const { messages, modern, initialize } = posted;
    const spans = [...spansByMessage.values()].map(({ span, request: { id, method } }) => ({ span, id, method }));
    return {
      posted: {
        ...posted,
        messages: messages.map(withSpan),
        modern: modern && withSpan(modern),
        initialize: initialize && withSpan(initialize),
      },
      traceReply: (reply) => new TracedReply(reply, spans),
    };
  };
}

interface OpenSpan {
  readonly span: Span;
  readonly id: Message['id'];
  readonly method: string | undefined;
}

/** A reply that ends spans with their responses, wherever a response occurs in it, or with the end of the reply. */
class TracedReply extends ForwardingReply {
  #spans: readonly OpenSpan[];

  constructor(reply: Reply, spans: readonly OpenSpan[]) {
    super(reply);
    this.#spans = spans;
    reply.onGone(() => this.#end(({ span }) => endWithError(span, 'client_gone')));
  }

  override answer(answer: CompleteAnswer): void {
    if (answer.kind === 'json') this.#endAnsweredIn(answer.text);
    this.#end(answer.kind === 'fault' ? ({ span }) => endWithError(span, answer.reason) : undefined);
    this.reply.answer(answer);
  }

  override stream(headers?: Headers): EventSink {
    const sink = this.reply.stream(headers);
    sink.onClose(() => this.#end());
    return new TracedSink(sink, this);
  }

  /** Ends the spans of requests that events answer. */
  endAnsweredBy(batch: EventBatch): void {
    if (this.#spans.length === 0) return;
    contain('request', () => {
      for (const text of batch.messageTexts) this.#endAnsweredIn(text);
    });
  }

  /** Ends the spans of requests that a text answers: one message, or those of a batch. */
  #endAnsweredIn(text: Buffer): void {
    contain('request', () => this.#endAnswered(text)); // tracing must not harm the traced request
  }

  #endAnswered(text: Buffer): void {
    const body = readBody(text, Number.POSITIVE_INFINITY);
    for (const read of body.ok ? body.messages : []) {
      if (!read.ok || read.message.kind !== 'response') continue;
      const { message } = read;
      const answered = this.#spans.find(({ id }) => id === message.id);
      if (answered === undefined) continue;
      this.#spans = this.#spans.filter((open) => open !== answered);
      endWithResponse(answered.span, answered.method, message);
    }
  }

  #end(end: (open: OpenSpan) => void = ({ span }) => span.end()): void {
    const spans = this.#spans;
    this.#spans = [];
    spans.forEach(end);
  }
}

/** The stream of such a reply. */
class TracedSink extends ForwardingSink {
  readonly #reply: TracedReply;

  constructor(sink: EventSink, reply: TracedReply) {
    super(sink);
    this.#reply = reply;
  }

  write(batch: EventBatch): boolean {
    this.#reply.endAnsweredBy(batch);
    return this.sink.write(batch);
  }
}
