import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { setImmediate as pollTurn } from 'node:timers/promises';
import { settlesWithin } from '../../../util/settles-within.ts';

/**
 * Resolves when all that a process had written when it exited has been read from its pipes by their 'data' listeners.
 * @param ms how long the pipes may stay open: a process left behind can hold them. After that what counts is that the
 *   event loop has polled them once more, since after a stall timers come before what waits to be read
 */
export async function drainPipes(streams: readonly Readable[], ms: number): Promise<void> {
  const ends = streams.filter((stream) => !stream.closed).map((stream) => once(stream, 'close'));
  if (!(await settlesWithin(Promise.allSettled(ends), ms))) await pollTurn();
}
