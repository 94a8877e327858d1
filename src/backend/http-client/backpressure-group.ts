import { detach } from '../../util/boundary.ts';
import type { ResponseBody } from './response-body.ts';

/** A body brought nothing for too long. */
export class IdleTimeoutError extends Error {
  override readonly name = 'Silence';
}

/** All bodies that a backend reads, stopped and started as one (P8). */
export interface BackpressureGroup {
  /**
   * Reads a body to its end. Rejects if it breaks before, with `Silence` if it brought nothing for `idleMs`.
   * @param onChunk called for each chunk, in order; never while paused. If it returns a promise, nothing more is read of this body
   *   until that is settled, and its end is told after it. A rejection breaks the body off
   * @param idleMs 0 for ever. While reading is stopped silence is not the server's, and does not count
   */
  read(body: ResponseBody, onChunk: (chunk: Buffer) => Promise<void> | undefined, idleMs?: number): Promise<void>;
  pause(): void;
  resume(): void;
}

/** The flow of one backend. */
export function createBackpressureGroup(): BackpressureGroup {
  /** Of each body that is read: what reading stopped or going on means for it. */
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
