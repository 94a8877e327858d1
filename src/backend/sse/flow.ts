import type { Readable } from 'node:stream';

/** All bodies that a backend reads, stopped and started as one (P8). */
export interface Flow {
  readonly isPaused: boolean;
  /**
   * Reads a body to its end. Rejects if it breaks before.
   * @param onChunk called for each chunk, in order; never while paused
   */
  read(body: Readable, onChunk: (chunk: Buffer) => void): Promise<void>;
  pause(): void;
  resume(): void;
}

/** @param onTurned reading was stopped or goes on */
export function createFlow(onTurned: () => void): Flow {
  const bodies = new Set<Readable>();
  let isPaused = false;
  const turn = (paused: boolean): void => {
    isPaused = paused;
    for (const body of bodies) body[paused ? 'pause' : 'resume']();
    onTurned();
  };
  return {
    get isPaused() {
      return isPaused;
    },
    read(body, onChunk) {
      return new Promise((resolve, reject) => {
        bodies.add(body);
        if (isPaused) body.pause();
        body.on('data', onChunk);
        body.once('end', resolve);
        body.once('error', reject);
        body.once('close', () => {
          bodies.delete(body);
          reject(new Error('The body was given up.')); // of no effect after its end
        });
      });
    },
    pause: () => turn(true),
    resume: () => turn(false),
  };
}
