import type { TracingFeature } from '../../app/features/telemetry.ts';
import { loadTracing } from './load-tracing.ts';

export const tracing: TracingFeature = { load: loadTracing };
