import type { GatewayTracing } from '../../app/features/telemetry.ts';

/** All copies of the OpenTelemetry API in a process find a registered SDK under this symbol. */
const sdkSymbol = Symbol.for('opentelemetry.js.api.1');

/**
 * Loads tracing with the OpenTelemetry SDK that was loaded before the gateway; undefined without one. The API is loaded
 * only with an SDK, because loading takes a large part of a start.
 * @param version the version of the gateway
 */
export async function loadTracing(version: string): Promise<GatewayTracing | undefined> {
  if (!(sdkSymbol in globalThis)) return undefined;
  const [{ findTracing }, { createRequestTracing }, { traceRequests }] = await Promise.all([
    import('./find-tracing.ts'),
    import('./trace-requests.ts'),
    import('./request-tracer.ts'),
  ]);
  const tracing = findTracing(version);
  if (tracing === undefined) return undefined;
  const { tracer, flush } = tracing;
  return {
    tracePosts: createRequestTracing(tracer),
    traceBackends: (server) => traceRequests(tracer, server),
    flush,
  };
}
