/** Buckets for each doubling of the time: each is 9 % wider than the one before. */
const bucketsPerDoubling = 8;

/** The first bucket ends at 1 ms. The last one begins at 2^17 ms (131 s) and has no end. */
const doublings = 17;
const bucketCount = 1 + doublings * bucketsPerDoubling + 1;

/** Returns the lower bound of a bucket, in milliseconds. */
const lowerBound = (bucket: number): number => (bucket === 0 ? 0 : 2 ** ((bucket - 1) / bucketsPerDoubling));

/**
 * A histogram of response times: 138 buckets of 4 bytes, which exist from the first time on (P8). Adding to them
 * allocates nothing.
 */
export class ResponseTimes {
  #buckets: Uint32Array | undefined;
  #count = 0;
  #minMs = Number.POSITIVE_INFINITY;
  #maxMs = 0;

  /** The number of times. */
  get count(): number {
    return this.#count;
  }

  add(ms: number): void {
    this.#buckets ??= new Uint32Array(bucketCount);
    const bucket = ms < 1 ? 0 : Math.min(bucketCount - 1, 1 + Math.floor(Math.log2(ms) * bucketsPerDoubling));
    (this.#buckets[bucket] as number) += 1;
    this.#count += 1;
    if (ms < this.#minMs) this.#minMs = ms;
    if (ms > this.#maxMs) this.#maxMs = ms;
  }

  /** Adds other times. */
  addAll(other: ResponseTimes): void {
    if (other.#count === 0) return;
    this.#buckets ??= new Uint32Array(bucketCount);
    const added = other.#buckets as Uint32Array;
    for (let bucket = 0; bucket < bucketCount; bucket += 1)
      (this.#buckets[bucket] as number) += added[bucket] as number;
    this.#count += other.#count;
    this.#minMs = Math.min(this.#minMs, other.#minMs);
    this.#maxMs = Math.max(this.#maxMs, other.#maxMs);
  }

  clear(): void {
    if (this.#count === 0) return;
    this.#buckets?.fill(0);
    this.#count = 0;
    this.#minMs = Number.POSITIVE_INFINITY;
    this.#maxMs = 0;
  }

  /** Returns the time within which this share of the answers came, in milliseconds; null without answers. */
  quantile(share: number): number | null {
    if (this.#buckets === undefined || this.#count === 0) return null;
    const rank = this.#count * share;
    let before = 0;
    let bucket = 0;
    for (; bucket < bucketCount - 1; bucket += 1) {
      const count = this.#buckets[bucket] as number;
      if (before + count >= rank && count > 0) break;
      before += count;
    }
    const lower = Math.max(lowerBound(bucket), this.#minMs);
    const upper = bucket === bucketCount - 1 ? this.#maxMs : Math.min(lowerBound(bucket + 1), this.#maxMs);
    const part = (rank - before) / Math.max(1, this.#buckets[bucket] as number);
    return Number((lower + (upper - lower) * Math.min(1, Math.max(0, part))).toPrecision(3));
  }
}
