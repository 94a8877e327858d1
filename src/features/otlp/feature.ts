import type { OtlpFeature } from '../../app/features/telemetry.ts';
import { loadOtlp } from './load-otlp.ts';

export const otlp: OtlpFeature = { load: loadOtlp };
