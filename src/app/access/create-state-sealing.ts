import type { GatewayConfig } from '../../config/config.ts';
import { CredentialMarks } from '../../core/keys/credential-marks.ts';
import { configuredKeys, type StateKeys, storedKeys } from '../../core/keys/state-keys.ts';
import type { Store } from '../../core/store/store.ts';
import { RequestStates } from '../../features/eras/keys/request-state.ts';

/** The uses of the keys that instances share: the configured keys, else one that the store keeps. */
export interface StateSealing {
  /** Seals and opens the `requestState` of modern clients. */
  readonly states: RequestStates;
  /** Recognises the credentials of clients for their servers. */
  readonly marks: CredentialMarks;
  /** The keys themselves, for other uses that derive keys of their own. */
  readonly keys: StateKeys;
}

/** Creates the sealing of a gateway. */
export function createStateSealing({ cluster }: GatewayConfig, store: Store): StateSealing {
  const [newest, ...older] = cluster.stateKeys;
  const keys = newest === undefined ? storedKeys(store) : configuredKeys([newest, ...older]);
  return { states: new RequestStates(keys), marks: new CredentialMarks(keys), keys };
}
