import type { RequestTracing } from '../http/pipeline/trace-requests.ts';
import type { Tracing } from '../ops/find-tracing.ts';
import type { RunningServer } from './servers/run-server.ts';

/** What makes spans of requests, towards clients and towards servers. */
export interface GatewayTracing extends Pick<Tracing, 'flush'> {
  readonly tracePosts: RequestTracing;
  /** The server with a span for each request that it is sent for a client. */
  traceServer(running: RunningServer): RunningServer;
}

/** Under this all copies of OpenTelemetry's API in a process find what an SDK has registered with one of them. */
const registered = Symbol.for('opentelemetry.js.api.1');

/**
 * Tracing by the OpenTelemetry SDK that was loaded before the gateway; undefined without one. The API is loaded only then: it
 * would be a good part of a start.
 * @param version of the gateway
 */
export async function loadTracing(version: string): Promise<GatewayTracing | undefined> {
  if (!(registered in globalThis)) return undefined;
  const [{ findTracing }, { createRequestTracing: createTracePosts }, { traceBackend: traced }] = await Promise.all([
    import('../ops/find-tracing.ts'),
    import('../http/pipeline/trace-requests.ts'),
    import('../backend/tracing/traced-backend.ts'),
  ]);
  const tracing = findTracing(version);
  if (tracing === undefined) return undefined;
  const { tracer, flush } = tracing;
  return {
    tracePosts: createTracePosts(tracer),
    traceServer({ server, modern, ...running }) {
      const open = traced(server.open, tracer, server.name);
      const openModern = modern && traced(modern.open, tracer, server.name);
      return {
        ...running,
        server: { ...server, open },
        modern: modern && openModern && { ...modern, open: openModern },
      };
    },
    flush,
  };
}
