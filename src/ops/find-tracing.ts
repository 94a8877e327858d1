import { type ProxyTracerProvider, type Tracer, type TracerProvider, trace } from '@opentelemetry/api';

/** What spans are made with. */
export interface Tracing {
  readonly tracer: Tracer;
  /** Hands over what was not exported yet: resolves when that is done, or takes too long. */
  flush(): Promise<void>;
}

/** How long the end of the process waits for an exporter. */
const lastWordMs = 1_000;

/**
 * The tracer of the OpenTelemetry SDK that was loaded before the gateway (`node --import`); undefined without one. Then nothing
 * is done for spans anywhere.
 * @param version of the gateway
 */
export function findTracing(version: string): Tracing | undefined {
  const provider = trace.getTracerProvider();
  // The API's own provider stands for the one that an SDK sets; without one its tracers make spans of nothing.
  if (isProxy(provider) && provider.getDelegateTracer(scope) === undefined) return undefined;
  const sdk = isProxy(provider) ? provider.getDelegate() : provider;
  return {
    tracer: trace.getTracer(scope, version),
    async flush() {
      if (!canFlush(sdk)) return;
      const late = new Promise<void>((resolve) => setTimeout(resolve, lastWordMs));
      // An exporter that fails says so by the SDK's own diagnostics.
      await Promise.race([sdk.forceFlush().catch(() => undefined), late]);
    },
  };
}

/** How backends that read traces call what makes these. */
const scope = 'mcp-gangway';

/** By what it has, and not by its class: it can be of another copy of the API, of which the SDK was installed with its own. */
const isProxy = (provider: TracerProvider): provider is ProxyTracerProvider =>
  'getDelegate' in provider && 'getDelegateTracer' in provider;

/** The API does not have it; providers of SDKs do (OpenTelemetry specification, "TracerProvider", "ForceFlush"). */
const canFlush = (provider: object): provider is { forceFlush(): Promise<void> } =>
  'forceFlush' in provider && typeof provider.forceFlush === 'function';
