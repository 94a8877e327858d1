import type { Socket } from 'node:net';

/** What one direction of a connection does to bytes. All of it can be changed while the connection is open. */
export interface Direction {
  /** Milliseconds that every byte is late. */
  readonly latencyMs?: number;
  readonly bytesPerSecond?: number;
  /**
   * The connection is cut after exactly so many bytes of this direction have passed, counted from when this was set.
   */
  readonly cutAfterBytes?: number;
  /**
   * Nothing passes, and no end, while this is true; the sender is not read, so that its buffers fill. Then all of it
   * goes on: what a short break of the network looks like to TCP.
   */
  readonly isHeld?: boolean;
}

/** One direction of one connection: passes bytes on in order, late and slowly as told, until the cut. */
export interface Relay {
  take(chunk: Buffer): void;
  end(): void;
  /** Changes what becomes of bytes from now on, also of those that wait here. */
  set(direction: Direction): void;
  /** Nothing passes any more. */
  stop(): void;
}

interface RelayOptions {
  readonly from: Socket;
  readonly to: Socket;
  onPassed(bytes: number): void;
  /** `cutAfterBytes` have passed. */
  onCut(): void;
}

/** So many bytes may be under way at once, as in a network with a latency. */
const maxUnderWay = 256 * 1024;

/** Makes one direction. */
export function createRelay({ from, to, onPassed, onCut }: RelayOptions, initial: Direction): Relay {
  let direction = initial;
  let left = initial.cutAfterBytes ?? Number.POSITIVE_INFINITY;
  let isStopped = false;
  /** What waits, oldest first; undefined is the end. */
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
    // A narrow way is no deep one: its sender is to feel it.
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
