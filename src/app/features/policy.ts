import type { PolicySettings } from '../../config/servers/policy-option.ts';
import type { CreateInterceptor } from '../../core/backend/link/link.ts';
import type { StateKeys } from '../../core/keys/state-keys.ts';
import type { ServerEvent } from '../../core/server/server-events.ts';
import type { Values } from '../../core/store/shared/shared-data.ts';
import type { Emit } from '../../core/util/telemetry/emit.ts';

/** A policy service that decides about the calls to a server (docs/policy.md). */
export interface PolicyFeature {
  /** The interceptor that asks the service, of each backend that clients use. */
  guard(options: PolicyOptions): CreateInterceptor;
  /** Asks the service about a call that nobody makes. Resolves with what is wrong, for the operator; undefined if nothing is. */
  test(server: string, settings: PolicySettings): Promise<string | undefined>;
}

/** What a guard needs. */
export interface PolicyOptions {
  /** The name of the server or view. */
  readonly server: string;
  readonly settings: PolicySettings;
  /** Seal the approvals that modern clients bring back, on any instance. */
  readonly keys: StateKeys;
  readonly values: Pick<Values, 'keep'>;
  readonly emit: Emit<ServerEvent>;
}
