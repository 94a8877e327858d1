// src/features/tracing: spans of the requests to servers.
import { propagation, ROOT_CONTEXT, type Span, type Tracer, trace } from '@opentelemetry/api';
import type { BackendEnd, RequestIds } from '../../core/backend/backend.ts';
import { type CreateInterceptor, Interceptor, type Outgoing, type Sent } from '../../core/backend/link/link.ts';
import type { Reason, RequestId } from '../../core/protocol/faults.ts';
import { putTraceContext, readTraceContext, traceHeaders } from '../../core/protocol/http/trace-context.ts';
import type { Message } from '../../core/protocol/message/message.ts';
import { endWithError, endWithResponse, startCallSpan } from './call-span.ts';

/** The span of a request that the server has not answered. */
interface OpenSpan {
  readonly span: Span;
  readonly method: string | undefined;
}

/**
 * Adds a span for each request that belongs to a trace, from its sending to its response. The server finds the span in
 * `params._meta`, and over HTTP in headers, too. The gateway's own requests belong to no trace and pass unchanged. So
 * does `initialize`, which is sent again to a server that replaces another.
 * @param server the name of the server
 */
export const traceRequests =
  (tracer: Tracer, server: string): CreateInterceptor =>
  () =>
    new RequestTracer(tracer, server);

class RequestTracer extends Interceptor {
  readonly #tracer: Tracer;
  readonly #server: string;
  /** No more spans than calls, which are limited: a call that is given up is cancelled at the server. */
  readonly #spans = new Map<RequestId, OpenSpan>();

  constructor(tracer: Tracer, server: string) {
    super();
    this.#tracer = tracer;
    this.#server = server;
  }

  override onSend(outgoing: Outgoing): Outgoing {
    const { message, headers } = outgoing;
    if (message.cancels !== undefined) this.#fail(message.cancels, 'cancelled');
    const started = message.kind === 'request' ? this.#begin(message) : undefined;
    if (started === undefined) return outgoing;
    const { span, carrier } = started;
    if (span.isRecording()) this.#spans.set(message.id as RequestId, { span, method: message.method });
    return { message: putTraceContext(message, carrier), headers: { ...headers, ...traceHeaders(carrier) } };
  }

  override onSent({ kind, id }: Message, result: Sent): void {
    if (kind === 'request' && result !== 'sent')
      this.#fail(id as RequestId, result === 'full' ? 'server_busy' : 'server_exited');
  }

  override onMessages(messages: readonly Message[]): readonly Message[] {
    for (const message of this.#spans.size === 0 ? [] : messages) {
      const openSpan = message.kind === 'response' ? this.#take(message.id) : undefined;
      if (openSpan !== undefined) endWithResponse(openSpan.span, openSpan.method, message);
    }
    return messages;
  }

  override onUnanswered(ids: RequestIds, reason: Reason, isFinal: boolean | undefined): void {
    for (const id of ids) this.#fail(id, reason);
    this.passUnanswered(ids, reason, isFinal);
  }

  override onOver({ reason }: BackendEnd): void {
    for (const id of [...this.#spans.keys()]) this.#fail(id, `server_${reason}`);
  }

  /** Begins the span of a request; undefined if the request belongs to no trace. */
  #begin(request: Message): { readonly span: Span; readonly carrier: Record<string, string> } | undefined {
    const parent = propagation.extract(ROOT_CONTEXT, readTraceContext(request, propagation.fields()));
    if (request.method === 'initialize' || trace.getSpanContext(parent) === undefined) return undefined;
    const attributes = {
      'mcp_gangway.server': this.#server,
      ...(this.pid !== undefined && { 'network.transport': 'pipe' }),
    };
    const span = startCallSpan({ tracer: this.#tracer, request, side: 'server', attributes, parent });
    const carrier: Record<string, string> = {};
    propagation.inject(trace.setSpan(parent, span), carrier);
    return { span, carrier };
  }

  #take(id: RequestId | null | undefined): OpenSpan | undefined {
    const openSpan = id == null ? undefined : this.#spans.get(id);
    if (id != null) this.#spans.delete(id);
    return openSpan;
  }

  #fail(id: RequestId, type: string): void {
    const openSpan = this.#take(id);
    if (openSpan !== undefined) endWithError(openSpan.span, type);
  }
}
