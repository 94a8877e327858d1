import { detach } from '../../../core/util/boundary.ts';
import { TimeLimit } from '../../../core/util/timing/time-limit.ts';
import type { ResponseBody } from './response-body.ts';

/** All bodies that a backend reads, stopped and resumed together (P8). */
export interface BackpressureGroup {
  /**
   * Reads a body to its end. Rejects if the body breaks before, or was silent for `idleMs`.
   * @param onChunk called for each chunk, in order; never while paused. If it returns a promise, nothing more is read
   *   of this body until the promise settles, and the end is reported after it. A rejection destroys the body
   * @param idleMs 0 for no limit. Time while reading is stopped does not count
   */
  read(body: ResponseBody, onChunk: (chunk: Buffer) => Promise<void> | undefined, idleMs?: number): Promise<void>;
  pause(): void;
  resume(): void;
}

/** Creates the group of one backend. */
export function createBackpressureGroup(): BackpressureGroup {
  /** Per body: applies a stop or resume of the group. */
  const appliers = new Set<() => void>();
  let isPaused = false;
  const setPaused = (paused: boolean): void => {
    isPaused = paused;
    for (const apply of appliers) apply();
  };
  return {
    read(body, onChunk, idleMs = 0) {
      return new Promise((resolve, reject) => {
        let limit: TimeLimit | undefined;
        let pendingChunk: Promise<void> | undefined;
        const limitIdle = (): void => {
          limit?.clear();
          if (idleMs === 0 || isPaused || pendingChunk !== undefined) return;
          limit = new TimeLimit(() => body.destroy(new Error(`nothing for ${idleMs} ms`)), idleMs);
        };
        const apply = (): void => {
          body[isPaused || pendingChunk !== undefined ? 'pause' : 'resume']();
          limitIdle();
        };
        const continueReading = (): void => {
          pendingChunk = undefined;
          if (appliers.has(apply)) apply();
        };
        const awaitChunk = (promise: Promise<void>): void => {
          pendingChunk = promise.then(continueReading, (cause: Error) => {
            pendingChunk = undefined;
            body.destroy(cause);
          });
          apply();
        };
        appliers.add(apply);
        apply();
        body.read({
          onChunk(chunk) {
            limitIdle();
            const promise = onChunk(chunk);
            if (promise !== undefined) awaitChunk(promise);
          },
          onEnd(cause) {
            appliers.delete(apply);
            limit?.clear();
            const end = (): void => (cause === undefined ? resolve() : reject(cause));
            if (pendingChunk === undefined) end();
            else detach('backend', pendingChunk.then(end));
          },
        });
      });
    },
    pause: () => setPaused(true),
    resume: () => setPaused(false),
  };
}
