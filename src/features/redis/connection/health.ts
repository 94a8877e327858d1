import { detach } from '../../../core/util/boundary.ts';
import { backoff } from '../../../core/util/timing/backoff.ts';

/** Tracks whether the store answers, and since when. */
export interface Health {
  /** A command was not answered, or the server cannot serve now, or the connection was lost. */
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
 * Makes the health of a connection. A failed command ends it, and only a probe shows that the store serves again: a
 * server that refuses writes goes on to answer reads.
 * @param probe resolves to true if the server takes writes. Never rejects.
 * @param quietMs how long no command must have failed before. A probe does not reach every slot of a cluster.
 */
export function createHealth(probe: () => Promise<boolean>, quietMs = 0): Health {
  let healthySinceMs: number | undefined;
  let hasFailed = false;
  let failures = 0;
  let failedAtMs = Number.NEGATIVE_INFINITY;
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
    const before = failures;
    const isServing = await probe();
    const isQuiet = failures === before && performance.now() - failedAtMs >= quietMs;
    if (isClosed || healthySinceMs !== undefined) return;
    if (isServing && isQuiet) recover();
    else probeSoon();
  };

  const recover = (): void => {
    healthySinceMs = performance.now();
    probes = 0;
    if (!hasFailed) return;
    hasFailed = false;
    for (const listener of listeners) listener();
  };

  const probeSoon = (): void => {
    if (timer !== undefined || isClosed) return;
    timer = setTimeout(() => {
      probes += 1;
      detach('store', probeNow());
    }, pauseAfter(probes)).unref();
  };
  probeSoon();

  return {
    failed() {
      failures += 1;
      failedAtMs = performance.now();
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
