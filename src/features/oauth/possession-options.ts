import { randomBytes } from 'node:crypto';
import type { SharedSecrets } from '../../app/features/access.ts';
import type { GatewayConfig } from '../../config/config.ts';
import type { ClusterStore } from '../../core/store/store.ts';
import { ifUnavailable } from '../../core/store/store-unavailable.ts';
import type { PossessionOptions } from './dpop/possession.ts';
import type { SharedProofs } from './dpop/used-proofs.ts';

/** Makes the options of the check that clients have the keys of their tokens. */
export const possessionOptions = (
  { auth: { oauth }, listen }: GatewayConfig,
  { keys, store }: SharedSecrets,
): PossessionOptions => ({
  dpop: oauth.dpop,
  certificates: certificatesOf(oauth.clientCertificates),
  publicUrl: listen.publicUrl ?? '',
  nonceKeys: () => keys.all().catch(ifUnavailable(undefined)),
  shared: sharedProofs(store),
  now: Date.now,
});

/** `any` accepts a certificate that no known authority has signed. */
const certificatesOf = (option: string | undefined): PossessionOptions['certificates'] =>
  option === undefined ? undefined : { mustBeTrusted: option !== 'any' };

function sharedProofs(store: ClusterStore | undefined): SharedProofs | undefined {
  if (store === undefined) return undefined;
  return {
    healthyForMs: () => store.healthyForMs(),
    use: (name, forMs) => useOnce(store, name, forMs).catch(ifUnavailable(undefined)),
  };
}

const markBytes = 9;

/** Resolves with true for the first use of a name by any instance within this time. */
async function useOnce({ values }: ClusterStore, name: string, forMs: number): Promise<boolean> {
  const mark = randomBytes(markBytes);
  return (await values.keep('used', name, mark, forMs)).equals(mark);
}
