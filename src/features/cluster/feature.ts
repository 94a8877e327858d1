import type { ClusterFeature } from '../../app/features/stores.ts';
import { Cluster } from './cluster.ts';
import { HttpPeers } from './peers/http-peers.ts';
import { describeLink, linkDirectory, peerAddressesOf } from './peers/peer-addresses.ts';
import { findUnreachable } from './peers/ways.ts';

export const cluster: ClusterFeature = {
  connect({ config, environment, store, secrets, limits, emit, onUnable }) {
    const peers =
      secrets &&
      new HttpPeers({
        instances: store.instances,
        secrets,
        addresses: peerAddressesOf(config, { directory: linkDirectory(environment), onUnable }),
        leaseMs: limits.leaseMs,
        emit,
      });
    return { leaseMs: limits.leaseMs, create: (host) => new Cluster({ ...host, store, limits, peers }) };
  },
  describeLink,
  findUnreachable: (published, environment) => findUnreachable(published, linkDirectory(environment)),
};
