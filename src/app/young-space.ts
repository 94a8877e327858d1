import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';

/** Often enough to see one doubling, at the rate of a burst. */
const lookMs = 100;

/**
 * Lets V8's space for new objects grow to about this size and no further. By itself it takes up to 128 MiB with Node.js 24, after
 * one burst such as many sessions that are opened at once, and keeps them while there is nothing to do (docs/decisions/0050).
 * @param maxBytes twice what `--max-semi-space-size` would say, which a program cannot set for itself
 */
export function limitYoungSpace(maxBytes: number): void {
  const timer = setInterval(() => {
    if (youngSpaceBytes() < maxBytes) return;
    clearInterval(timer);
    setFlagsFromString('--semi-space-growth-factor=1'); // V8 asks for it each time it thinks of growing
  }, lookMs).unref();
}

const youngSpaceBytes = (): number =>
  getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space')?.space_size ?? 0;
