import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { setImmediate as pollTurn } from 'node:timers/promises';
import { settlesWithin } from '../../../util/timing/within.ts';

/**
 * Resolves when the 'data' listeners of the pipes have read all output that a process had written before it exited.
 * @param ms how long the pipes may stay open: a process left behind can hold them. After that one more poll of the
 *   event loop counts, since after a stall timers come before waiting input
 */
export async function drainPipes(streams: readonly Readable[], ms: number): Promise<void> {
  const ends = streams.filter((stream) => !stream.closed).map((stream) => once(stream, 'close'));
  if (!(await settlesWithin(Promise.allSettled(ends), ms))) await pollTurn();
}
