import type { GatewayConfig } from '../../config/config.ts';
import { CredentialMarks } from '../../era/keys/credential-marks.ts';
import { RequestStates } from '../../era/keys/request-state.ts';
import { configuredKeys, storedKeys } from '../../era/keys/state-keys.ts';
import type { Store } from '../../store/store.ts';

/** What instances can do that share keys: the configured ones, else one that the store keeps. */
export interface StateSealing {
  /** Makes and opens the states of modern clients. */
  readonly states: RequestStates;
  /** Recognises credentials of clients for their servers. */
  readonly marks: CredentialMarks;
}

/** Makes both. */
export function createStateSealing({ stateKey: [newest, ...older] }: GatewayConfig, store: Store): StateSealing {
  const keys = newest === undefined ? storedKeys(store) : configuredKeys([newest, ...older]);
  return { states: new RequestStates(keys), marks: new CredentialMarks(keys) };
}
