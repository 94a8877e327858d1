// src/app/features: what features add to a gateway. src/features.ts lists those of this build, a line each.

import type { GatewayConfig } from '../../config/config.ts';
import type { Environment } from '../../config/sources/environment-variables.ts';
import type { OAuthFeature } from './access.ts';
import type {
  DefinitionsFeature,
  FiltersFeature,
  PolicyFeature,
  ResultLimitsFeature,
  ToolSearchFeature,
} from './calls.ts';
import type { CardsFeature, LegacySseFeature, WebSocketFeature } from './endpoints.ts';
import type { ErasFeature, TasksFeature } from './eras.ts';
import type {
  PackagesFeature,
  RemoteFeature,
  SharingFeature,
  UpstreamIdentityFeature,
  ViewsFeature,
} from './servers.ts';
import type { ClusterFeature, FilesFeature, RedisFeature } from './stores.ts';
import type {
  AuditFeature,
  ConsoleFeature,
  MetricsFeature,
  OperatorPortFeature,
  OtlpFeature,
  TracingFeature,
} from './telemetry.ts';

/**
 * The features of a gateway. Each is optional: a gateway without one is complete otherwise. The assembly knows a feature
 * only by this interface, so its folder can be deleted with its line.
 */
export interface Features {
  readonly audit?: AuditFeature;
  readonly cards?: CardsFeature;
  readonly cluster?: ClusterFeature;
  readonly console?: ConsoleFeature;
  readonly definitions?: DefinitionsFeature;
  readonly eras?: ErasFeature;
  readonly files?: FilesFeature;
  readonly filters?: FiltersFeature;
  readonly legacySse?: LegacySseFeature;
  readonly metrics?: MetricsFeature;
  readonly oauth?: OAuthFeature;
  readonly operatorPort?: OperatorPortFeature;
  readonly otlp?: OtlpFeature;
  readonly policy?: PolicyFeature;
  readonly packages?: PackagesFeature;
  readonly redis?: RedisFeature;
  readonly remote?: RemoteFeature;
  readonly resultLimits?: ResultLimitsFeature;
  readonly sharing?: SharingFeature;
  readonly tasks?: TasksFeature;
  readonly toolSearch?: ToolSearchFeature;
  readonly tracing?: TracingFeature;
  readonly upstreamIdentity?: UpstreamIdentityFeature;
  readonly views?: ViewsFeature;
  readonly webSocket?: WebSocketFeature;
}

/** What the program was started with, to run a gateway or a command. */
export interface GatewaySetup {
  readonly config: GatewayConfig;
  /** Those of this build. */
  readonly features: Features;
  readonly environment: Environment;
  /** The configuration file; undefined for a server on the command line. */
  readonly file?: string | undefined;
}

/**
 * Returns a feature that an option needs. Throws an error for the operator if this build does not have it.
 * @param option as an operator writes it
 */
export function needed<Feature>(feature: Feature | undefined, option: string): Feature {
  if (feature !== undefined) return feature;
  throw new Error(
    `This build of the gateway has no support for ${option}. Remove the option, or use a complete build.`,
  );
}
