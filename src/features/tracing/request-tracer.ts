// src/features/tracing: spans of the requests to servers.
import { propagation, ROOT_CONTEXT, type Span, type Tracer, trace } from '@opentelemetry/api';
import { AnswerWatcher } from '../../core/backend/link/answer-watcher.ts';
import type { CreateInterceptor, Outgoing } from '../../core/backend/link/link.ts';
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

/** There are no more spans than calls, which are limited: a call that is given up is cancelled at the server. */
class RequestTracer extends AnswerWatcher<OpenSpan> {
  readonly #tracer: Tracer;
  readonly #server: string;

  constructor(tracer: Tracer, server: string) {
    super();
    this.#tracer = tracer;
    this.#server = server;
  }

  override onSend(outgoing: Outgoing): Outgoing {
    const { message, headers } = outgoing;
    if (message.cancels !== undefined) this.lose(message.cancels, 'cancelled');
    const started = message.kind === 'request' ? this.#begin(message) : undefined;
    if (started === undefined) return outgoing;
    const { span, carrier } = started;
    if (span.isRecording()) this.note(message, { span, method: message.method });
    return { message: putTraceContext(message, carrier), headers: { ...headers, ...traceHeaders(carrier) } };
  }

  protected override onAnswer(answer: Message, { span, method }: OpenSpan): Message {
    endWithResponse(span, method, answer);
    return answer;
  }

  protected override onLost({ span }: OpenSpan, why: string): void {
    endWithError(span, why);
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
}
