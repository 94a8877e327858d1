import type { GatewayConfig } from '../../config/config.ts';
import { CredentialMarks } from '../../core/keys/credential-marks.ts';
import { configuredKeys, type StateKeys, storedKeys } from '../../core/keys/state-keys.ts';
import type { Store } from '../../core/store/store.ts';

/** The keys that instances share, and their uses: the configured keys, else one that the store keeps. */
export interface SharedKeys {
  readonly keys: StateKeys;
  /** Recognises the credentials of clients for their servers. */
  readonly marks: CredentialMarks;
}

/** Creates the keys of a gateway. */
export function createSharedKeys({ cluster }: GatewayConfig, store: Store): SharedKeys {
  const [newest, ...older] = cluster.stateKeys;
  const keys = newest === undefined ? storedKeys(store) : configuredKeys([newest, ...older]);
  return { keys, marks: new CredentialMarks(keys) };
}
