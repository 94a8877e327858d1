import { RequestStates } from '../era/request-state.ts';
import { configuredKeys, storedKeys } from '../era/state-keys.ts';
import type { Store } from '../store/store.ts';
import type { GatewayConfig } from './configuration/config.ts';

/** What makes and opens the states of modern clients: by the configured keys, else by one that the store keeps. */
export function createRequestStates({ stateKey: [newest, ...older] }: GatewayConfig, store: Store): RequestStates {
  return new RequestStates(newest === undefined ? storedKeys(store) : configuredKeys([newest, ...older]));
}
