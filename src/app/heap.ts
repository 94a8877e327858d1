import { getHeapSpaceStatistics, getHeapStatistics, setFlagsFromString } from 'node:v8';

/** Often enough to see one doubling, at the rate of a burst. */
const lookMs = 100;
/** How long it may stay small after V8 has made it smaller, for want of work. */
const lookAgainMs = 1_000;

/**
 * Lets V8's space for new objects grow to about this size and no further. By itself it takes up to 128 MiB with Node.js 24, after
 * one burst such as many sessions that are opened at once, and keeps them while there is nothing to do (docs/decisions/0050).
 * @param maxBytes twice what `--max-semi-space-size` would say, which a program cannot set for itself
 */
export function limitYoungSpace(maxBytes: number): void {
  const isFull = youngSpaceBytes() >= maxBytes;
  setFlagsFromString(`--semi-space-growth-factor=${isFull ? 1 : 2}`); // V8 asks for it each time it thinks of growing; 2 is its own
  setTimeout(limitYoungSpace, isFull ? lookAgainMs : lookMs, maxBytes).unref();
}

const youngSpaceBytes = (): number =>
  getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space')?.space_size ?? 0;

/** V8 itself lets a heap that fills fast grow by 300 %. */
const maxGrowthPercent = 400;

/**
 * Lets a heap that is smaller than this grow by as much before V8 looks through all of it again. By itself V8 lets it grow by a few
 * MiB, and counts the buffers of messages among them, though they lie elsewhere (docs/decisions/0051). A larger one is left
 * to V8.
 */
export function spareFullCollections(growthBytes: number): void {
  const { used_heap_size: bytes } = getHeapStatistics();
  const percent = bytes < growthBytes ? Math.min(Math.ceil((100 * growthBytes) / bytes), maxGrowthPercent) : 0; // 0: as V8 thinks fit
  setFlagsFromString(`--heap-growing-percent=${percent}`); // V8 asks for it at the end of each full collection
  fullCollections.register({}, growthBytes);
}

/**
 * Calls back after each full collection: one of new objects alone lets go of nothing weakly held. Stands here because a registry
 * that nothing refers to is collected too, and calls nobody.
 */
const fullCollections = new FinalizationRegistry<number>(spareFullCollections);
