import { type ProxyTracerProvider, type Tracer, type TracerProvider, trace } from '@opentelemetry/api';
import { settlesWithin } from '../../core/util/timing/within.ts';

/** The tracer of the gateway. */
export interface Tracing {
  readonly tracer: Tracer;
  /** Exports the remaining spans; resolves when that is done, or after a time limit. */
  flush(): Promise<void>;
}

/** How long the exit of the process waits for an exporter. */
const exitWaitMs = 1_000;

/**
 * Finds the tracer of the OpenTelemetry SDK that was loaded before the gateway (`node --import`). Returns undefined
 * without an SDK; tracing then costs nothing.
 * @param version of the gateway
 */
export function findTracing(version: string): Tracing | undefined {
  const provider = trace.getTracerProvider();
  // The API's own provider is a proxy for the SDK's. Without an SDK its tracers create spans that do nothing.
  if (isProxy(provider) && provider.getDelegateTracer(scope) === undefined) return undefined;
  const sdk = isProxy(provider) ? provider.getDelegate() : provider;
  return {
    tracer: trace.getTracer(scope, version),
    async flush() {
      if (!canFlush(sdk)) return;
      // The SDK's own diagnostics report a failed export.
      await settlesWithin(
        sdk.forceFlush().catch(() => undefined),
        exitWaitMs,
      );
    },
  };
}

/** The name of this tracer in tracing backends. */
const scope = 'mcp-gangway';

/** The check uses members, not the class: an SDK may bring its own copy of the API. */
const isProxy = (provider: TracerProvider): provider is ProxyTracerProvider =>
  'getDelegate' in provider && 'getDelegateTracer' in provider;

/**
 * The API does not declare `forceFlush`; providers of SDKs have it (OpenTelemetry specification, "TracerProvider",
 * "ForceFlush").
 */
const canFlush = (provider: object): provider is { forceFlush(): Promise<void> } =>
  'forceFlush' in provider && typeof provider.forceFlush === 'function';
