// Loaded before the gateway (node --import), this sends its spans to an OpenTelemetry collector. All is said by the variables of
// the OpenTelemetry specification: OTEL_EXPORTER_OTLP_ENDPOINT (http://localhost:4318), OTEL_EXPORTER_OTLP_HEADERS,
// OTEL_TRACES_SAMPLER, OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES. docs/tracing.md says the rest.
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node';

const resource = defaultResource()
  .merge(resourceFromAttributes({ 'service.name': 'mcp-gangway' }))
  .merge(detectResources({ detectors: [envDetector] }));

// What is not sent when the gateway ends, it has sent then itself: it flushes the provider.
new NodeTracerProvider({ resource, spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())] }).register();
