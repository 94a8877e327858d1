import {
  type Attributes,
  type Context,
  type Link,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
} from '@opentelemetry/api';
import { errorCodeIn } from '../../core/protocol/json.ts';
import { maxNameLength, readCallName } from '../../core/protocol/message/call-name.ts';
import { type Message, memberRange } from '../../core/protocol/message/message.ts';
import { methodOf } from '../../core/protocol/methods/methods.ts';

/** The request of a span, and the side of the gateway. */
export interface CallSpanOptions {
  readonly tracer: Tracer;
  readonly request: Message;
  /** `client`: the gateway serves its client; `server`: the gateway is the client of its server. */
  readonly side: 'client' | 'server';
  /** Attributes besides those of the request. */
  readonly attributes: Attributes;
  readonly parent: Context;
  readonly links?: Link[];
}

/** Attribute for the name in a request, by what it names. */
const nameKeys = { tool: 'gen_ai.tool.name', prompt: 'gen_ai.prompt.name' } as const;

/**
 * Begins the span of a request, named and described by the semantic conventions for MCP (OpenTelemetry GenAI, "MCP").
 * Attributes that grant access or reveal content are left out (P12): session ids, ids of JSON-RPC requests, URIs,
 * arguments, results and error texts.
 */
export function startCallSpan({ tracer, request, side, attributes, parent, links = [] }: CallSpanOptions): Span {
  const method = (request.method ?? '').slice(0, maxNameLength);
  const name = readCallName(request);
  const { names } = methodOf(method);
  const allAttributes: Attributes = {
    ...attributes,
    'mcp.method.name': method,
    ...(names === 'tool' && { 'gen_ai.operation.name': 'execute_tool' }),
    ...(names !== undefined && name !== undefined && { [nameKeys[names]]: name }),
  };
  const kind = side === 'client' ? SpanKind.SERVER : SpanKind.CLIENT;
  return tracer.startSpan(
    name === undefined ? method : `${method} ${name}`,
    { kind, attributes: allAttributes, links },
    parent,
  );
}

/** Ends a span with the response to its request. */
export function endWithResponse(span: Span, method: string | undefined, response: Message): void {
  if (memberRange(response, 'message', 'error') !== undefined) {
    const code = errorCodeIn(response.text)?.toString();
    if (code !== undefined) span.setAttribute('rpc.response.status_code', code);
    return endWithError(span, code ?? '_OTHER');
  }
  if (methodOf(method).names === 'tool' && response.reportsToolError) endWithError(span, 'tool_error');
  else span.end();
}

/**
 * Ends the span of a request that failed.
 * @param type the kind of failure, one of few words
 */
export function endWithError(span: Span, type: string): void {
  span.setAttribute('error.type', type).setStatus({ code: SpanStatusCode.ERROR });
  span.end();
}
