import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatDuration, formatSize, parseDurationMs, parseSizeBytes } from '../../src/config/units.ts';

describe('times', () => {
  it.each([
    ['250ms', 250],
    ['30s', 30_000],
    ['30m', 1_800_000],
    ['1h30m', 5_400_000],
    ['1.5s', 1500],
    ['0.25h', 900_000],
    ['2d', 172_800_000],
    [' 5s ', 5000],
    ['0', 0],
    ['0s', 0],
    ['30', undefined],
    ['', undefined],
    ['s', undefined],
    ['30 s', undefined],
    ['30S', undefined],
    ['30m1h', undefined],
    ['1s1s', undefined],
    ['-5s', undefined],
    ['0.5ms', undefined],
    ['1w', undefined],
    ['1e3s', undefined],
    ['9'.repeat(60), undefined],
  ])('%j is %s ms', (text, ms) => {
    expect(parseDurationMs(text)).toBe(ms);
  });

  it('are written in the shortest form, which is read as the same time', () => {
    expect([0, 90_000, 5_400_000, 86_400_000].map(formatDuration)).toEqual(['0', '1m30s', '1h30m', '1d']);
    fc.assert(fc.property(fc.nat(), (ms) => parseDurationMs(formatDuration(ms)) === ms));
  });
});

describe('sizes', () => {
  it.each([
    ['512B', 512],
    ['64k', 65_536],
    ['64KiB', 65_536],
    ['64kb', 65_536],
    ['4MiB', 4_194_304],
    ['4 MB', 4_194_304],
    ['1.5g', 1_610_612_736],
    ['0', 0],
    ['512', undefined],
    ['4X', undefined],
    ['0.3B', undefined],
    ['-1k', undefined],
    ['', undefined],
    ['99999999999TiB', undefined],
  ])('%j is %s bytes', (text, bytes) => {
    expect(parseSizeBytes(text)).toBe(bytes);
  });

  it('are written in the largest unit without a fraction, which is read as the same size', () => {
    expect([0, 1000, 65_536, 4_194_304, 2 ** 30].map(formatSize)).toEqual(['0', '1000B', '64KiB', '4MiB', '1GiB']);
    fc.assert(fc.property(fc.nat(), (bytes) => parseSizeBytes(formatSize(bytes)) === bytes));
  });
});
