import { configuredKeys, type StateKeys, storedKeys } from '../era/state-keys.ts';
import type { Store } from '../store/store.ts';
import type { GatewayConfig } from './configuration/config.ts';

/** The keys that the instances share: the configured ones, else one that the store keeps. */
export function createStateKeys({ stateKey: [newest, ...older] }: GatewayConfig, store: Store): StateKeys {
  return newest === undefined ? storedKeys(store) : configuredKeys([newest, ...older]);
}
