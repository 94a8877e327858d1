import { setTimeout as delay } from 'node:timers/promises';

/** Deadline of everything that a test waits for, unless it says otherwise; far above what a loaded machine needs. */
export const defaultDeadlineMs = 30_000;

/**
 * The tolerance that a test adds to an expected duration, for two cores that also run other tests and their processes.
 */
export const loadMs = 4_000;

/** The deadline, and the description for the error. */
export interface Waiting {
  readonly deadlineMs?: number;
  readonly what?: string;
}

/**
 * Resolves with the promise, or rejects after `deadlineMs` with an error that says what was waited for.
 * The promise itself goes on.
 */
export async function withDeadline<T>(promise: Promise<T>, { deadlineMs = defaultDeadlineMs, what }: Waiting = {}) {
  const controller = new AbortController();
  const expired = delay(deadlineMs, undefined, { signal: controller.signal }).then(() => {
    throw new Error(`Waited ${deadlineMs} ms in vain for ${what ?? 'a promise'}`);
  });
  // The aborted timer rejects after the race is decided; nobody listens to it then.
  expired.catch(() => undefined);
  try {
    return await Promise.race([promise, expired]);
  } finally {
    controller.abort();
  }
}

/**
 * Polls `condition` until it returns a value that is neither undefined nor false, and resolves with it. For states
 * without an event, such as the process table. Where there is an event, use an inbox or `withDeadline`.
 */
export async function waitFor<T>(
  condition: () => T | Promise<T>,
  {
    deadlineMs = defaultDeadlineMs,
    what = condition.toString(),
    intervalMs = 10,
  }: Waiting & { intervalMs?: number } = {},
): Promise<Exclude<T, undefined | false | null>> {
  const end = performance.now() + deadlineMs;
  for (;;) {
    const value = await condition();
    if (value !== undefined && value !== false && value !== null) return value as Exclude<T, undefined | false | null>;
    if (performance.now() > end) throw new Error(`Waited ${deadlineMs} ms in vain for ${what}`);
    await delay(intervalMs);
  }
}

/** Collects arriving items in order, and waits for them by a predicate. */
export interface Inbox<T> {
  /** Everything that arrived so far. */
  readonly items: readonly T[];
  push(item: T): void;
  /** Marks the end: `next` rejects for items that have not arrived. */
  end(reason?: Error): void;
  /** Resolves at `end`; rejects if `end` had a reason. */
  readonly ended: Promise<void>;
  /**
   * The first item not yet taken by an earlier `next` for which `matches` is true, arrived or still to come.
   * Rejects at the deadline, or when the inbox ends before.
   */
  next(matches?: (item: T) => boolean, waiting?: Waiting): Promise<T>;
}

/** Makes an empty inbox. */
export function createInbox<T>(): Inbox<T> {
  const items: T[] = [];
  const taken = new Set<number>();
  const checks = new Set<() => void>();
  let isEnded = false;
  let endReason: Error | undefined;
  let settleEnd: (reason?: Error) => void;
  const ended = new Promise<void>((resolve, reject) => {
    settleEnd = (reason) => (reason ? reject(reason) : resolve());
  });
  // Without a caller that awaits `ended`, a broken inbox must not be an unhandled rejection.
  ended.catch(() => undefined);
  const checkAll = () => {
    for (const check of [...checks]) check();
  };

  return {
    items,
    ended,
    push(item) {
      items.push(item);
      checkAll();
    },
    end(reason) {
      if (isEnded) return;
      isEnded = true;
      endReason = reason;
      settleEnd(reason);
      checkAll();
    },
    next(matches = () => true, waiting = {}) {
      let stopChecking: (() => void) | undefined;
      /** Items before this index did not match, so each item is checked once. */
      let from = 0;
      const found = new Promise<T>((resolve, reject) => {
        const check = () => {
          let index = from;
          while (index < items.length && (taken.has(index) || !matches(items[index] as T))) index += 1;
          from = index;
          if (index < items.length) {
            taken.add(index);
            resolve(items[index] as T);
          } else if (isEnded) {
            reject(new Error(`Ended before ${waiting.what ?? 'the item'} came`, { cause: endReason }));
          } else {
            return;
          }
          checks.delete(check);
        };
        checks.add(check);
        stopChecking = () => checks.delete(check);
        check();
      });
      return withDeadline(found, { what: 'an item', ...waiting }).finally(() => stopChecking?.());
    },
  };
}

/** What waits for microtasks or a turn of the event loop has happened. */
export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
