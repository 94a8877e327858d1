import type { TracingFeature } from '../../app/features.ts';
import { loadTracing } from './load-tracing.ts';

export const tracing: TracingFeature = { load: loadTracing };
