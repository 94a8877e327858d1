import { detach } from '../../util/boundary.ts';
import type { ResponseBody } from './response-body.ts';

/** A body was silent for too long. */
export class IdleTimeoutError extends Error {
  override readonly name = 'Silence';
}

/** All bodies that a backend reads, stopped and resumed together (P8). */
export interface BackpressureGroup {
  /**
   * Reads a body to its end. Rejects if the body breaks before, with `IdleTimeoutError` if it was silent for `idleMs`.
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
  const turns = new Set<() => void>();
  let isPaused = false;
  const turnTo = (paused: boolean): void => {
    isPaused = paused;
    for (const turn of turns) turn();
  };
  return {
    read(body, onChunk, idleMs = 0) {
      return new Promise((resolve, reject) => {
        let timer: NodeJS.Timeout | undefined;
        let taking: Promise<void> | undefined;
        const limitIdle = (): void => {
          clearTimeout(timer);
          if (idleMs === 0 || isPaused || taking !== undefined) return;
          timer = setTimeout(() => body.destroy(new IdleTimeoutError(`nothing for ${idleMs} ms`)), idleMs);
        };
        const turn = (): void => {
          body[isPaused || taking !== undefined ? 'pause' : 'resume']();
          limitIdle();
        };
        const goOn = (): void => {
          taking = undefined;
          if (turns.has(turn)) turn();
        };
        const hold = (promise: Promise<void>): void => {
          taking = promise.then(goOn, (cause: Error) => {
            taking = undefined;
            body.destroy(cause);
          });
          turn();
        };
        turns.add(turn);
        turn();
        body.read({
          onChunk(chunk) {
            limitIdle();
            const promise = onChunk(chunk);
            if (promise !== undefined) hold(promise);
          },
          onEnd(cause) {
            turns.delete(turn);
            clearTimeout(timer);
            const end = (): void => (cause === undefined ? resolve() : reject(cause));
            if (taking === undefined) end();
            else detach('backend', taking.then(end));
          },
        });
      });
    },
    pause: () => turnTo(true),
    resume: () => turnTo(false),
  };
}
