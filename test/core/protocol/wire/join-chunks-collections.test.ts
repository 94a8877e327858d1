import { afterEach, beforeEach, expect, it, vi } from 'vitest';

const mebibyte = 2 ** 20;

beforeEach(() => vi.resetModules());
afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

/** The module reads the environment once, as it is loaded. */
async function joinWith(gc: unknown, version = '24.0.0'): Promise<(count: number, bytes: number) => void> {
  vi.stubGlobal('gc', gc);
  vi.spyOn(process, 'versions', 'get').mockReturnValue({ ...process.versions, node: version });
  const { joinChunks } = await import('../../../../src/core/protocol/wire/join-chunks.ts');
  return (count, bytes) => {
    for (let i = 0; i < count; i += 1) joinChunks([Buffer.alloc(bytes / 2), Buffer.alloc(bytes / 2)], bytes);
  };
}

it('collects new objects after every 4 MiB of large messages', async () => {
  const gc = vi.fn();
  const join = await joinWith(gc);
  join(3, mebibyte);
  expect(gc).not.toHaveBeenCalled();
  join(1, mebibyte);
  expect(gc).toHaveBeenCalledExactlyOnceWith({ type: 'minor' });
  join(8, mebibyte);
  expect(gc).toHaveBeenCalledTimes(3);
});

it('does not count small messages, whose objects make V8 collect often enough', async () => {
  const gc = vi.fn();
  const join = await joinWith(gc);
  join(20_000, 1_024);
  expect(gc).not.toHaveBeenCalled();
});

it.each([
  ['without --expose-gc', undefined, '24.0.0'],
  ['on Node.js 22', vi.fn(), '22.23.3'],
])('collects nothing %s', async (_, gc, version) => {
  const join = await joinWith(gc, version);
  join(40, mebibyte);
  if (gc !== undefined) expect(gc).not.toHaveBeenCalled();
});
