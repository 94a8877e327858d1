// Counts of what happened in one job: answers by time, and everything that was not right.

export class Tally {
  /** What went wrong, by what it was. A Map's keys can be any text of a peer. */
  #faults = new Map();
  #latencies = [];
  faultCount = 0;
  answers = 0;
  events = 0;
  isRecording = false;

  fault(what) {
    const key = String(what).slice(0, 120);
    this.#faults.set(key, (this.#faults.get(key) ?? 0) + 1);
    this.faultCount += 1;
  }

  get faults() {
    return Object.fromEntries(this.#faults);
  }

  answered(ms) {
    if (!this.isRecording) return;
    this.answers += 1;
    this.#latencies.push(ms);
  }

  /** Median and 99th percentile in milliseconds. */
  get latency() {
    const sorted = Float64Array.from(this.#latencies).sort();
    const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? null;
    return { p50: at(0.5), p99: at(0.99) };
  }
}
