import type { ConsoleHost, EndedCall } from '../../host.ts';
import { CallCounts } from './call-counts.ts';

/** Receives the counts of a server. The counts are cleared afterwards, so a receiver adds them to its own. */
export type TakeCounts = (server: string, counts: CallCounts) => void;

/**
 * Counts each ended call once, by server. The rates and the history take the counts every second, so that a call does
 * not pay for their slots and steps.
 */
export class CallCounter {
  readonly #byServer = new Map<string, CallCounts>();
  readonly #host: Pick<ConsoleHost, 'isMeasured'>;
  /** True if a call was counted since the last fold. */
  #hasNew = false;

  constructor(host: Pick<ConsoleHost, 'isMeasured'>) {
    this.#host = host;
  }

  count(call: EndedCall): void {
    const { server } = call.origin;
    let counts = this.#byServer.get(server);
    if (counts === undefined) {
      counts = new CallCounts();
      this.#byServer.set(server, counts);
    }
    counts.count(call, this.#host.isMeasured(call.method));
    this.#hasNew = true;
  }

  /** Passes on the counts since the last fold, and clears them. */
  fold(take: TakeCounts): void {
    if (!this.#hasNew) return;
    this.#hasNew = false;
    for (const [server, counts] of this.#byServer) {
      if (counts.calls === 0) continue;
      take(server, counts);
      counts.clear();
    }
  }

  /** Forgets a server that is no longer configured. */
  forget(server: string): void {
    this.#byServer.delete(server);
  }
}
