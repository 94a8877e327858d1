import type { ClusterLimits } from '../../app/features/stores.ts';
import type { ClusterHost } from '../../core/registry/session-cluster.ts';
import type { ClusterStore } from '../../core/store/store.ts';
import type { PeerTransport } from './peers/peer-request.ts';

/** What all parts of a cluster work with: the registry of this instance, and what it shares with the others. */
export interface ClusterOptions extends ClusterHost {
  readonly store: ClusterStore;
  readonly limits: ClusterLimits;
  /** The way to other instances; absent if there can be none. */
  readonly peers?: PeerTransport | undefined;
}

/** A client that waits for a lost owner or store gets an end within a lease plus this time (P3). */
export const noticeMs = 2_000;

/** Reports work with the store that has failed. */
export const reportStoreFault = ({ telemetry }: Pick<ClusterOptions, 'telemetry'>, cause: unknown): void =>
  telemetry.emit({ type: 'store-failed', cause });
