import type { Features } from './app/features/gateway-features.ts';
import { audit } from './features/audit/feature.ts';
import { cards } from './features/cards/feature.ts';
import { cluster } from './features/cluster/feature.ts';
import { console } from './features/console/feature.ts';
import { definitions } from './features/definitions/feature.ts';
import { eras } from './features/eras/feature.ts';
import { files } from './features/files/feature.ts';
import { filters } from './features/filters/feature.ts';
import { legacySse } from './features/legacy-sse/feature.ts';
import { metrics } from './features/metrics/feature.ts';
import { oauth } from './features/oauth/feature.ts';
import { operatorPort } from './features/operator-port/feature.ts';
import { otlp } from './features/otlp/feature.ts';
import { packages } from './features/packages/feature.ts';
import { policy } from './features/policy/feature.ts';
import { redis } from './features/redis/feature.ts';
import { remote } from './features/remote/feature.ts';
import { resultLimits } from './features/result-limits/feature.ts';
import { sharing } from './features/sharing/feature.ts';
import { tasks } from './features/tasks/feature.ts';
import { toolSearch } from './features/tool-search/feature.ts';
import { tracing } from './features/tracing/feature.ts';
import { upstreamIdentity } from './features/upstream-identity/feature.ts';
import { views } from './features/views/feature.ts';
import { webSocket } from './features/websocket/feature.ts';

/**
 * The features of this build, a line each. A feature leaves with its import, its line, its folders in `src/features` and
 * `test/features`, and its row in `src/README.md`. Its options stay: they are then refused at the start
 * (docs/decisions/0226). `node test/run.mjs features` deletes each feature, and names what else looks at it.
 */
export const features: Features = {
  audit,
  cards,
  cluster,
  console,
  definitions,
  eras,
  files,
  filters,
  legacySse,
  metrics,
  oauth,
  operatorPort,
  otlp,
  policy,
  packages,
  redis,
  remote,
  resultLimits,
  sharing,
  tasks,
  toolSearch,
  tracing,
  upstreamIdentity,
  views,
  webSocket,
};
