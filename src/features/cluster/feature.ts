import type { ClusterFeature } from '../../app/features/stores.ts';
import { Cluster } from './cluster.ts';
import { HttpPeers } from './peers/http-peers.ts';
import { linkDirectory } from './peers/link-directory.ts';
import { describeLink, peerAddressesOf } from './peers/peer-addresses.ts';
import { findUnreachable } from './peers/reach-instances.ts';

export const cluster: ClusterFeature = {
  connect({ config, environment, store, secrets, limits, emit, onUnable }) {
    const peers =
      secrets &&
      new HttpPeers({
        instances: store.instances,
        secrets,
        addresses: peerAddressesOf(config, { directory: linkDirectory(environment), onUnable }),
        leaseMs: limits.leaseMs,
        onUnreachable: (peer, detail) => emit({ type: 'peer-unreachable', ...peer, detail }),
        onReachable: (peer) => emit({ type: 'peer-reachable', ...peer }),
        onRefused: (reason) => emit({ type: 'peer-refused', reason }),
        onFault: (cause) => emit({ type: 'store-failed', cause }),
      });
    return { leaseMs: limits.leaseMs, create: (host) => new Cluster({ ...host, store, limits, peers }) };
  },
  describeLink,
  findUnreachable: (published, environment) => findUnreachable(published, linkDirectory(environment)),
};
