import { propagation, type Span, SpanKind, SpanStatusCode, type Tracer, trace } from '@opentelemetry/api';
import { CompositePropagator, W3CBaggagePropagator, W3CTraceContextPropagator } from '@opentelemetry/core';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  type Sampler,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';

/** An OpenTelemetry SDK in this process. */
export interface Spans {
  readonly tracer: Tracer;
  /** The spans that have ended, in that order. */
  ended(): readonly ReadableSpan[];
  reset(): void;
}

/** Registers the official SDK for the rest of the test file; spans stay in memory. */
export function registerSpans(sampler?: Sampler): Spans {
  const exporter = new InMemorySpanExporter();
  const spanProcessors = [new SimpleSpanProcessor(exporter)];
  const provider = new BasicTracerProvider({ spanProcessors, ...(sampler && { sampler }) });
  trace.setGlobalTracerProvider(provider);
  propagation.setGlobalPropagator(
    new CompositePropagator({ propagators: [new W3CTraceContextPropagator(), new W3CBaggagePropagator()] }),
  );
  return {
    tracer: provider.getTracer('test'),
    ended: () => exporter.getFinishedSpans(),
    reset: () => exporter.reset(),
  };
}

/** The W3C Trace Context header of the span to which a message belongs. */
export function traceparentOf(span: Pick<Span, 'spanContext'>): string {
  const { traceId, spanId, traceFlags } = span.spanContext();
  return `00-${traceId}-${spanId}-0${traceFlags}`;
}

/** The members of a span that tests compare. */
export const shown = ({ name, kind, attributes, status }: ReadableSpan): object => ({
  name,
  kind: SpanKind[kind],
  attributes,
  isError: status.code === SpanStatusCode.ERROR,
});
