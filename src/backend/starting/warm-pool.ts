import { contain, detach } from '../../util/boundary.ts';
import { backoff } from '../../util/timing/backoff.ts';
import { type Backend, type BackendEnd, type BackendEvents, type OpenBackend, reportUnits } from '../backend.ts';
import { EarlyOutput } from './early-output.ts';

/** Options of a pool of warm spares. */
export interface WarmPoolOptions {
  readonly open: OpenBackend;
  /** How many backends are kept started and unused. */
  readonly size: number;
  /** A spare ended before it was used: its server does not start, or does not wait. */
  onSpareEnd(end: BackendEnd): void;
  /** A message or line of a spare was dropped, because the spare had written too much before its use. */
  onOutputDropped(): void;
}

/** A pool of backends started ahead, so that a new session need not wait for its server to start. */
export interface WarmPool {
  /** Opens a backend: a spare if there is one. */
  readonly open: OpenBackend;
  /** Starts one spare beyond `size`; it is ended if it is still unused after `expireMs`. */
  addSpare(expireMs: number): void;
  /** Ends all spares and starts replacements. */
  renew(): void;
  /** Ends all spares and starts no more. */
  close(): Promise<void>;
}

/** A spare that ends is replaced after a pause, so that a broken server is not started in a loop. */
const pauseAfter = backoff({ firstMs: 1_000, maxMs: 60_000 });
/** Delay between the use of a spare and the start of its successor: longer than the handshakes of a burst take. */
const refillAfterMs = 50;

/** The limit on the output of a spare before it is used, such as a banner. The rest is dropped and counted (P8). */
const maxEarlyBytes = 64 * 1024;

/** Creates a pool that begins to start its spares. */
export function createWarmPool({ open, size, onSpareEnd, onOutputDropped }: WarmPoolOptions): WarmPool {
  const spares: Spare[] = [];
  let isClosed = false;
  /** Spares that ended in a row. */
  let unusedEnds = 0;
  let restartTimer: NodeJS.Timeout | undefined;
  let refillTimer: NodeJS.Timeout | undefined;

  const remove = (spare: Spare): void => {
    const index = spares.indexOf(spare);
    if (index >= 0) spares.splice(index, 1);
  };

  const start = (): Spare => {
    const early = new EarlyOutput(maxEarlyBytes, onOutputDropped);
    const spare = openSpare(open, early, (end) => {
      remove(spare);
      onSpareEnd(end);
      restartTimer ??= setTimeout(() => {
        restartTimer = undefined;
        fill();
      }, pauseAfter(unusedEnds)).unref();
      unusedEnds += 1;
    });
    spares.push(spare);
    return spare;
  };

  const fill = (): void => {
    while (!isClosed && spares.length < size) start();
  };

  /** Starts one spare in each turn of the event loop, so that requests are served between two starts. */
  const refill = (): void => {
    refillTimer = undefined;
    if (isClosed || spares.length >= size) return;
    start();
    setImmediate(refill);
  };

  fill();
  return {
    open(events, options) {
      const spare = options?.resume === undefined ? spares.shift() : undefined;
      if (spare === undefined) return open(events, options);
      unusedEnds = 0;
      // A start blocks this process for milliseconds: the clients of a burst should not wait for it.
      refillTimer ??= setTimeout(refill, refillAfterMs).unref();
      return spare.use(events);
    },
    addSpare(expireMs) {
      const spare = start();
      setTimeout(() => {
        if (spares.length <= size || !spares.includes(spare)) return;
        remove(spare);
        detach('backend', spare.backend.close());
      }, expireMs).unref();
    },
    renew() {
      for (const { backend } of spares.splice(0)) detach('backend', backend.close());
      fill();
    },
    async close() {
      isClosed = true;
      clearTimeout(restartTimer);
      clearTimeout(refillTimer);
      await Promise.all(spares.splice(0).map((spare) => spare.backend.close()));
    },
  };
}

interface Spare {
  readonly backend: Backend;
  /** Hands the backend over: from now on it reports to these events, first the early messages. */
  use(events: BackendEvents): Backend;
}

function openSpare(open: OpenBackend, early: EarlyOutput, onUnusedEnd: (end: BackendEnd) => void): Spare {
  let isUsed = false;
  let receiver: BackendEvents = early;
  const backend = open({
    onMessages: (messages, relatedRequests) => receiver.onMessages(messages, relatedRequests),
    onUnits: (units) => reportUnits(receiver, units),
    onNoise: (text, more) => receiver.onNoise(text, more),
    onUnanswered: (ids, reason, isFinal) => receiver.onUnanswered(ids, reason, isFinal),
    onState: (state) => receiver.onState?.(state),
    onEnd(end) {
      if (isUsed) receiver.onEnd(end);
      else if (end.reason !== 'closed') onUnusedEnd(end);
    },
  });
  return {
    backend,
    use(events) {
      isUsed = true;
      queueMicrotask(() => {
        receiver = events;
        const close = (): void => detach('backend', backend.close());
        contain('backend', () => early.deliver(events), close);
      });
      return backend;
    },
  };
}
