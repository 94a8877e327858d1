import type { Features } from './app/features.ts';
import { audit } from './features/audit/feature.ts';
import { console } from './features/console/feature.ts';
import { files } from './features/files/feature.ts';
import { metrics } from './features/metrics/feature.ts';
import { redis } from './features/redis/feature.ts';
import { tracing } from './features/tracing/feature.ts';

/** The features of this build, a line each. A feature leaves with its import, its line and its folder. */
export const features: Features = {
  audit,
  console,
  files,
  metrics,
  redis,
  tracing,
};
