import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'vitest';
import { root } from './gateway.ts';

/** A span in OTLP, with its attributes as an object. */
export interface ExportedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  /** 2 for a server, 3 for a client. */
  readonly kind: number;
  readonly attributes: Readonly<Record<string, unknown>>;
  /** The service name of the span. */
  readonly service: unknown;
}

/** Receives spans like an OpenTelemetry collector (OTLP over HTTP, in JSON). */
export interface Collector {
  readonly url: string;
  spans(): readonly ExportedSpan[];
  close(): void;
}

interface Attribute {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}

interface Exported {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly {
      readonly spans: readonly (Omit<ExportedSpan, 'attributes' | 'service'> & {
        readonly attributes: readonly Attribute[];
      })[];
    }[];
  }[];
}

const valuesOf = (attributes: readonly Attribute[]): Record<string, unknown> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));

/** Starts a collector. The caller closes it. */
export async function startCollector(): Promise<Collector> {
  const spans: ExportedSpan[] = [];
  const server = createServer(async (request, response) => {
    const { resourceSpans } = JSON.parse(Buffer.concat(await request.toArray()).toString()) as Exported;
    for (const { resource, scopeSpans } of resourceSpans) {
      const service = valuesOf(resource.attributes)['service.name'];
      for (const span of scopeSpans.flatMap((scope) => scope.spans))
        spans.push({ ...span, attributes: valuesOf(span.attributes), service });
    }
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans: () => spans,
    close: () => void server.close(),
  };
}

/** Variables of a gateway that exports spans to a collector, as in the example of `deploy/tracing`. */
export const tracedEnvironment = ({ url }: Collector): Record<string, string> => ({
  NODE_OPTIONS: `--import ${root}deploy/tracing/preload.mjs`,
  OTEL_EXPORTER_OTLP_ENDPOINT: url,
});

/** The client's span of its requests, and the header that carries it. */
export const client = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: '00f067aa0ba902b7' };
export const traceparent = `00-${client.traceId}-${client.spanId}-01`;

/** The one span of a request from a client, and the spans of the requests to the server. */
export interface Sides {
  readonly outer: ExportedSpan;
  readonly inner: readonly ExportedSpan[];
}

/** The spans of this name. Exactly one must be for the client. */
export function sidesOf(collector: Collector, name: string): Sides {
  const named = collector.spans().filter((span) => span.name === name);
  const [outer, ...others] = named.filter(({ kind }) => kind === 2);
  if (outer === undefined || others.length > 0) {
    throw new Error(`${outer === undefined ? 0 : others.length + 1} spans of ${name} were told, not 1`);
  }
  return { outer, inner: named.filter(({ kind }) => kind === 3) };
}

/** Expects that the trace continues from the client through the gateway to the server. */
export function expectChain({ outer, inner }: Sides, sent: unknown): void {
  expect(outer).toMatchObject({ traceId: client.traceId, parentSpanId: client.spanId, service: 'mcp-gangway' });
  expect(inner).toMatchObject([{ traceId: client.traceId, parentSpanId: outer.spanId }]);
  expect(sent).toBe(`00-${client.traceId}-${inner[0]?.spanId}-01`);
}
