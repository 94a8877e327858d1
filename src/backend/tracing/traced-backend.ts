// src/backend/tracing: spans of the requests to servers.
import { propagation, ROOT_CONTEXT, type Span, type Tracer, trace } from '@opentelemetry/api';
import type { RequestId } from '../../protocol/faults.ts';
import { putTraceContext, readTraceContext, traceHeaders } from '../../protocol/http/trace-context.ts';
import type { Message } from '../../protocol/message/message.ts';
import type { OpenBackend } from '../backend.ts';
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
export function traceBackend(open: OpenBackend, tracer: Tracer, server: string): OpenBackend {
  return (events, options) => {
    // No more spans than calls, which are limited: a call that is given up is cancelled at the server.
    const spans = new Map<RequestId, OpenSpan>();
    const takeSpan = (id: RequestId | null | undefined): OpenSpan | undefined => {
      const openSpan = id == null ? undefined : spans.get(id);
      if (id != null) spans.delete(id);
      return openSpan;
    };
    const failSpan = (id: RequestId, type: string): void => {
      const openSpan = takeSpan(id);
      if (openSpan !== undefined) endWithError(openSpan.span, type);
    };
    const failAllSpans = (type: string): void => {
      for (const id of [...spans.keys()]) failSpan(id, type);
    };

    const backend = open(
      {
        onMessages(messages, relatedRequests) {
          for (const message of spans.size === 0 ? [] : messages) {
            const openSpan = message.kind === 'response' ? takeSpan(message.id) : undefined;
            if (openSpan !== undefined) endWithResponse(openSpan.span, openSpan.method, message);
          }
          events.onMessages(messages, relatedRequests);
        },
        onNoise: (text, more) => events.onNoise(text, more),
        onUnanswered(ids, reason, isFinal) {
          for (const id of ids) failSpan(id, reason);
          events.onUnanswered(ids, reason, isFinal);
        },
        onState: (state) => events.onState?.(state),
        onEnd(end) {
          failAllSpans(`server_${end.reason}`);
          events.onEnd(end);
        },
      },
      options,
    );

    /** Begins the span of a request; undefined if the request belongs to no trace. */
    const beginSpan = (
      request: Message,
    ): { readonly span: Span; readonly carrier: Record<string, string> } | undefined => {
      const parent = propagation.extract(ROOT_CONTEXT, readTraceContext(request, propagation.fields()));
      if (request.method === 'initialize' || trace.getSpanContext(parent) === undefined) return undefined;
      const attributes = {
        'mcp_gangway.server': server,
        ...(backend.pid !== undefined && { 'network.transport': 'pipe' }),
      };
      const span = startCallSpan({ tracer, request, side: 'server', attributes, parent });
      const carrier: Record<string, string> = {};
      propagation.inject(trace.setSpan(parent, span), carrier);
      return { span, carrier };
    };

    return {
      get pid() {
        return backend.pid;
      },
      send(message, headers) {
        if (message.cancels !== undefined) failSpan(message.cancels, 'cancelled');
        const started = message.kind === 'request' ? beginSpan(message) : undefined;
        if (started === undefined) return backend.send(message, headers);
        const { span, carrier } = started;
        const id = message.id as RequestId;
        if (span.isRecording()) spans.set(id, { span, method: message.method });
        const sent = backend.send(putTraceContext(message, carrier), { ...headers, ...traceHeaders(carrier) });
        if (sent !== 'sent') failSpan(id, sent === 'full' ? 'server_busy' : 'server_exited');
        return sent;
      },
      pause: () => backend.pause(),
      resume: () => backend.resume(),
      close: (how) => backend.close(how),
    };
  };
}
