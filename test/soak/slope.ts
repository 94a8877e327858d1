/** The growth of a quantity, by the straight line that fits it best (least squares). */
export interface Slope {
  readonly perHour: number;
  readonly mean: number;
  readonly points: number;
}

/** @param points [milliseconds, value] */
export function slopeOf(points: readonly (readonly [number, number])[]): Slope {
  const count = points.length;
  const meanOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / count;
  const meanAt = meanOf(points.map(([at]) => at));
  const mean = meanOf(points.map(([, value]) => value));
  let over = 0;
  let under = 0;
  for (const [at, value] of points) {
    over += (at - meanAt) * (value - mean);
    under += (at - meanAt) ** 2;
  }
  return { perHour: under === 0 ? 0 : (over / under) * 3_600_000, mean, points: count };
}
