import { detach } from '../../../util/boundary.ts';
/** Whether the store answers, and since when. */
export interface Health {
  /** A command was answered. */
  answered(): void;
  /** A command was not, or the connection is gone. */
  failed(): void;
  /** There is a connection: asks at once, without the pause after a failure. */
  connected(): void;
  healthyForMs(): number;
  onRecovered(listener: () => void): void;
  close(): void;
}

/** Begins healthy with the first answer, and asks by itself for one while there is none. */
const firstProbeMs = 25;
const maxProbeMs = 500;

/**
 * Makes the state of a connection.
 * @param probe a command that only a server can answer that would also take writes; its outcome is told by `answered` and
 *   `failed` as that of any other
 */
export function createHealth(probe: () => Promise<unknown>): Health {
  let healthySinceMs: number | undefined;
  let hasFailed = false;
  let timer: NodeJS.Timeout | undefined;
  let probes = 0;
  let isClosed = false;
  const listeners: (() => void)[] = [];

  const stopWaiting = (): void => {
    clearTimeout(timer);
    timer = undefined;
  };

  const probeNow = async (): Promise<void> => {
    stopWaiting();
    // The outcome is told to `answered` or `failed` by who runs the command.
    await probe().catch(() => undefined);
  };

  const probeSoon = (): void => {
    if (timer !== undefined || isClosed) return;
    const delayMs = Math.min(firstProbeMs * 2 ** Math.min(probes, 10), maxProbeMs);
    timer = setTimeout(async () => {
      probes += 1;
      await probeNow();
      if (healthySinceMs === undefined) probeSoon();
    }, delayMs);
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
      if (healthySinceMs !== undefined) hasFailed = true; // the first connection is no recovery
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
      stopWaiting();
    },
  };
}
