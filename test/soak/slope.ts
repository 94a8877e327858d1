/** The growth of a quantity, by the straight line that fits it best (least squares). */
export interface Slope {
  readonly perHour: number;
  /** The standard error of `perHour`. It is larger where values that follow each other differ from the line in the same way. */
  readonly errorPerHour: number;
  readonly mean: number;
  readonly points: number;
}

/** A value at a time in milliseconds. */
export type Point = readonly [atMs: number, value: number];

const hourMs = 3_600_000;

/** Values that follow each other count for at least a nineteenth of as many independent ones. */
const maxCorrelation = 0.9;

export function slopeOf(points: readonly Point[]): Slope {
  const count = points.length;
  const sumOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);
  const meanAt = sumOf(points.map(([at]) => at)) / count;
  const mean = sumOf(points.map(([, value]) => value)) / count;
  const over = sumOf(points.map(([at, value]) => (at - meanAt) * (value - mean)));
  const under = sumOf(points.map(([at]) => (at - meanAt) ** 2));
  if (under === 0) return { perHour: 0, errorPerHour: Number.POSITIVE_INFINITY, mean, points: count };
  const slope = over / under;
  const rests = points.map(([at, value]) => value - mean - slope * (at - meanAt));
  const squares = sumOf(rests.map((rest) => rest ** 2));
  const products = sumOf(rests.slice(1).map((rest, index) => rest * (rests[index] as number)));
  const correlation = squares === 0 ? 0 : Math.min(maxCorrelation, Math.max(0, products / squares));
  const variance = count > 2 ? squares / (count - 2) / under : Number.POSITIVE_INFINITY;
  const error = Math.sqrt((variance * (1 + correlation)) / (1 - correlation));
  return { perHour: slope * hourMs, errorPerHour: error * hourMs, mean, points: count };
}

/** True if a quantity grows by more than this. By chance, it looks so once in forty times at most. */
export const surelyExceeds = ({ perHour, errorPerHour }: Slope, maxPerHour: number): boolean =>
  perHour - 2 * errorPerHour > maxPerHour;

/**
 * The lowest value of each window, at the middle of the window. Memory rises until it is collected, and what is not garbage
 * stays: a leak lifts the lowest values as much as all others.
 */
export function lowestOf(points: readonly Point[], windowMs: number): readonly Point[] {
  const lowest = new Map<number, number>();
  for (const [at, value] of points) {
    const window = Math.floor(at / windowMs);
    lowest.set(window, Math.min(lowest.get(window) ?? Number.POSITIVE_INFINITY, value));
  }
  return [...lowest].map(([window, value]) => [(window + 0.5) * windowMs, value]);
}
