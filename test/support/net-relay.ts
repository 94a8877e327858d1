import type { Socket } from 'node:net';

/** The plan for the bytes of one direction. It can be changed while the connection is open. */
export interface Direction {
  /** The delay of every byte in milliseconds. */
  readonly latencyMs?: number;
  readonly bytesPerSecond?: number;
  /**
   * The connection is cut after exactly this number of bytes in this direction, counted from the change of the plan.
   */
  readonly cutAfterBytes?: number;
  /**
   * Nothing passes, and no end, while this is true; the sender is not read, so that its buffers fill. Then all of it
   * goes on: what a short break of the network looks like to TCP.
   */
  readonly isHeld?: boolean;
}

/** One direction of a connection: passes bytes on in order, with delay and speed of the plan, until the cut. */
export interface Relay {
  take(chunk: Buffer): void;
  end(): void;
  /** Changes the plan for all bytes, including those that wait here. */
  set(direction: Direction): void;
  /** Stops the direction. */
  stop(): void;
}

interface RelayOptions {
  readonly from: Socket;
  readonly to: Socket;
  onPassed(bytes: number): void;
  /** `cutAfterBytes` have passed. */
  onCut(): void;
}

/** The maximum number of bytes under way, as in a network with latency. */
const maxUnderWay = 256 * 1024;

/** Makes one direction. */
export function createRelay({ from, to, onPassed, onCut }: RelayOptions, initial: Direction): Relay {
  let direction = initial;
  let left = initial.cutAfterBytes ?? Number.POSITIVE_INFINITY;
  let isStopped = false;
  /** The waiting chunks, oldest first; undefined is the end. */
  let waiting: { readonly chunk: Buffer | undefined; dueAt: number }[] = [];
  let freeAt = 0;
  let timer: NodeJS.Timeout | undefined;

  const schedule = (bytes: number): number => {
    const { latencyMs = 0, bytesPerSecond } = direction;
    const slowness = bytesPerSecond === undefined ? 0 : (bytes * 1_000) / bytesPerSecond;
    freeAt = Math.max(performance.now() + latencyMs, freeAt) + slowness;
    return freeAt;
  };
  const cutIfDue = (): void => {
    if (left > 0 || isStopped) return;
    isStopped = true;
    onCut();
  };
  const pass = (chunk: Buffer | undefined): void => {
    if (to.destroyed) return;
    if (chunk === undefined) return void to.end();
    const part = chunk.subarray(0, left);
    left -= part.length;
    onPassed(part.length);
    if (part.length > 0) to.write(part);
    cutIfDue();
  };
  const regulate = (): void => {
    const underWay = waiting.reduce((sum, { chunk }) => sum + (chunk?.length ?? 0), 0);
    // With limited speed, the sender must notice it, so little is buffered.
    const isFull = underWay >= (direction.bytesPerSecond === undefined ? maxUnderWay : 1);
    if (!isStopped && (isFull || direction.isHeld === true || to.writableNeedDrain)) from.pause();
    else from.resume();
  };
  const pump = (): void => {
    clearTimeout(timer);
    for (let [next] = waiting; next !== undefined && !isStopped && direction.isHeld !== true; [next] = waiting) {
      const inMs = next.dueAt - performance.now();
      if (inMs > 0) {
        timer = setTimeout(pump, Math.ceil(inMs));
        break;
      }
      waiting.shift();
      pass(next.chunk);
    }
    regulate();
  };
  const add = (chunk: Buffer | undefined): void => {
    if (isStopped) return;
    waiting.push({ chunk, dueAt: schedule(chunk?.length ?? 0) });
    pump();
  };

  to.on('drain', pump);
  if (left <= 0) queueMicrotask(cutIfDue);
  if (initial.isHeld) from.pause();
  return {
    take: add,
    end: () => add(undefined),
    set(changed) {
      if (changed.cutAfterBytes !== direction.cutAfterBytes) left = changed.cutAfterBytes ?? Number.POSITIVE_INFINITY;
      direction = changed;
      freeAt = 0;
      for (const item of waiting) item.dueAt = schedule(item.chunk?.length ?? 0);
      cutIfDue();
      pump();
    },
    stop() {
      isStopped = true;
      waiting = [];
      clearTimeout(timer);
    },
  };
}
