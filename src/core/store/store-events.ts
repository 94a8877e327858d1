import type { Emit } from '../util/telemetry/emit.ts';
import type { Meter } from '../util/telemetry/meter.ts';
import type { StoreUnavailable } from './store-unavailable.ts';

/** An event of the shared store. */
export type StoreEvent = Readonly<
  /** The store answers, for the first time or again. */
  | { type: 'store-joined' }
  /** Work with the store failed. Any cause other than `StoreUnavailable` is a fault of the gateway. */
  | { type: 'store-failed'; cause: unknown }
  /** Another instance holds its lease, but does not answer this one at its address. */
  | { type: 'peer-unreachable'; instance: string; address: string; detail: string }
  | { type: 'peer-reachable'; instance: string; address: string }
  /** A request for the port of the instances was not one of another instance. */
  | { type: 'peer-refused'; reason: 'malformed' | 'version' | 'stranger' }
  /** One command of the store failed. The work that needs the command reports `store-failed`, if it cannot go on. */
  | { type: 'store-command-failed'; reason: StoreUnavailable['reason'] }
>;

/** How a store outside of this process reports its commands. */
export interface StoreTelemetry {
  readonly emit: Emit<StoreEvent>;
  /** The time of each command that was answered. */
  readonly commandSeconds: Meter;
}
