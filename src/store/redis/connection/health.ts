import { detach } from '../../../util/boundary.ts';
import { backoff } from '../../../util/timing/backoff.ts';

/** Tracks whether the store answers, and since when. */
export interface Health {
  /** A command was answered. */
  answered(): void;
  /** A command was not answered, or the connection was lost. */
  failed(): void;
  /** The connection is established. Probes at once, without the pause after a failure. */
  connected(): void;
  healthyForMs(): number;
  onRecovered(listener: () => void): void;
  close(): void;
}

/** The pauses between probes while the store does not answer. */
const pauseAfter = backoff({ firstMs: 25, maxMs: 500 });

/**
 * Makes the health of a connection. The store becomes healthy with the first answer. While there is none, the health
 * sends probes itself.
 * @param probe runs a command that only a server which takes writes can answer. Its runner reports the outcome with
 *   `answered` and `failed`, as for any other command.
 */
export function createHealth(probe: () => Promise<unknown>): Health {
  let healthySinceMs: number | undefined;
  let hasFailed = false;
  let timer: NodeJS.Timeout | undefined;
  let probes = 0;
  let isClosed = false;
  const listeners: (() => void)[] = [];

  const clearProbeTimer = (): void => {
    clearTimeout(timer);
    timer = undefined;
  };

  const probeNow = async (): Promise<void> => {
    clearProbeTimer();
    // The runner of the command reports the outcome to `answered` or `failed`.
    await probe().catch(() => undefined);
  };

  const probeSoon = (): void => {
    if (timer !== undefined || isClosed) return;
    timer = setTimeout(async () => {
      probes += 1;
      await probeNow();
      if (healthySinceMs === undefined) probeSoon();
    }, pauseAfter(probes));
    timer.unref();
  };
  probeSoon();

  return {
    answered() {
      if (healthySinceMs !== undefined) return;
      healthySinceMs = performance.now();
      probes = 0;
      if (!hasFailed) return;
      hasFailed = false;
      for (const listener of listeners) listener();
    },
    failed() {
      if (healthySinceMs !== undefined) hasFailed = true; // the first connection does not count as a recovery
      healthySinceMs = undefined;
      probeSoon();
    },
    connected() {
      if (healthySinceMs === undefined && !isClosed) detach('store', probeNow());
    },
    healthyForMs: () => (healthySinceMs === undefined ? 0 : performance.now() - healthySinceMs),
    onRecovered(listener) {
      listeners.push(listener);
    },
    close() {
      isClosed = true;
      healthySinceMs = undefined;
      clearProbeTimer();
    },
  };
}
