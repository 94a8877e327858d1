import { Worker } from 'node:worker_threads';
import fc from 'fast-check';

/** One subject, the cases to try on it, and what holds for every one of them. */
export interface FuzzerOptions<T> {
  readonly name: string;
  /** How many cases it gets, against the others. */
  readonly share: number;
  readonly cases: fc.Arbitrary<T>;
  /** Cases that are tried first, always. */
  readonly seeds?: readonly Readonly<NoInfer<T>>[];
  /** Throws if something does not hold. Does the same each time that it gets the same case. */
  readonly check: (given: T) => void | Promise<void>;
  /** Throws if the cases of a run did not reach what they are for. */
  readonly expectReach?: () => void;
}

/** What came of a run. */
export interface FuzzOutcome {
  readonly cases: number;
  /** How long the slowest case took. */
  readonly slowestMs: number;
  /** The smallest case for which something does not hold, and what; undefined if there is none. */
  readonly failure: string | undefined;
}

export interface Fuzzer {
  readonly name: string;
  readonly share: number;
  readonly run: (cases: number, seed: number) => Promise<FuzzOutcome>;
  /** Tries the case that these bytes choose, each time the same one. Throws or rejects if something does not hold. */
  readonly runOn: (bytes: Buffer) => void | Promise<void>;
  /** Throws if the cases so far did not reach what they are for. Some hundred cases are enough to know. */
  readonly expectReach: () => void;
}

/** A case that takes longer is a failure: whoever can send it can slow all others down. */
const maxCaseMs = 50;
/** A case that takes as long as this hangs. */
const hangMs = 20_000;

export function createFuzzer<T>({
  name,
  share,
  cases,
  seeds = [],
  check,
  expectReach = () => undefined,
}: FuzzerOptions<T>): Fuzzer {
  return {
    name,
    share,
    async run(count, seed) {
      let slowestMs = 0;
      const watchdog = watch(`${name}: a case hangs; run it again with FUZZ_SEED=${seed}`);
      const property = fc.asyncProperty(cases, async (given) => {
        watchdog.isAlive();
        const ms = await timeOf(check, given, slowestMs);
        slowestMs = Math.max(slowestMs, ms);
        if (ms > maxCaseMs) throw new Error(`the case takes ${Math.round(ms)} ms`);
      });
      const examples = seeds.map((one): [T] => [one as T]);
      try {
        const details = await fc.check(property, { seed, numRuns: count + seeds.length, examples });
        const failure = details.failed ? reportOf(details) : undefined;
        return { cases: details.numRuns, slowestMs, failure };
      } finally {
        await watchdog.end();
      }
    },
    expectReach,
    runOn: (bytes) => check(cases.generate(new fc.Random(new ByteSource(bytes)), undefined).value),
  };
}

/**
 * Draws the numbers of a case from bytes, so that a fuzzer that changes bytes changes the case. Behind the bytes come
 * numbers that only depend on how many were drawn.
 */
class ByteSource {
  readonly #bytes: Buffer;
  #drawn: number;

  constructor(bytes: Buffer, drawn = 0) {
    this.#bytes = bytes;
    this.#drawn = drawn;
  }

  next(): number {
    const at = this.#drawn * 2;
    this.#drawn += 1;
    // Most choices are among few. A byte more would only be noise to the fuzzer.
    const value = at + 2 <= this.#bytes.length ? this.#bytes.readUInt16LE(at) : this.#drawn;
    return Math.imul(value, 0x1_0001) | 0;
  }

  clone(): ByteSource {
    return new ByteSource(this.#bytes, this.#drawn);
  }

  getState(): readonly number[] {
    return [this.#drawn];
  }
}

/** What failed, also with the case's bytes as text, which says more to people. */
function reportOf<T>(details: fc.RunDetails<[T]>): string {
  const text = JSON.stringify(details.counterexample, (_, value) =>
    value?.type === 'Buffer' ? Buffer.from(value.data).toString('latin1') : value,
  );
  return `${fc.defaultReportMessage(details)}\n${details.errorInstance}\n${text}`;
}

/** How often a case that seems to be slow is tried again. */
const attempts = 4;

/**
 * How long a check takes. More than `knownMs` is believed only of processor time, and only if it takes as long each time:
 * what the machine does meanwhile is not its fault.
 */
async function timeOf<T>(check: (given: T) => void | Promise<void>, given: T, knownMs: number): Promise<number> {
  const started = performance.now();
  const pending = check(given);
  if (pending !== undefined) await pending;
  let leastMs = performance.now() - started;
  for (let attempt = 0; attempt < attempts && leastMs > knownMs; attempt++) {
    const before = process.cpuUsage();
    await check(given);
    const { user, system } = process.cpuUsage(before);
    leastMs = Math.min(leastMs, (user + system) / 1_000);
  }
  return leastMs;
}

const watchdogProgram = `
const { writeSync } = require('node:fs');
const { workerData: { beats, ms, text } } = require('node:worker_threads');
let seen = -1;
setInterval(() => {
  const now = Atomics.load(beats, 0);
  if (now === seen) {
    writeSync(2, text + '\\n');
    process.kill(process.pid, 'SIGKILL');
  }
  seen = now;
}, ms);
`;

/** Ends the process when no case has begun for long: a hang leaves nothing else in it that could. */
function watch(text: string): { isAlive(): void; end(): Promise<unknown> } {
  const beats = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(watchdogProgram, { eval: true, workerData: { beats, ms: hangMs, text } });
  worker.unref();
  return { isAlive: () => Atomics.add(beats, 0, 1), end: () => worker.terminate() };
}
