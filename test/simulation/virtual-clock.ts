/** A task that is due at a time of the virtual clock, on behalf of a participant. */
interface Task {
  readonly atMs: number;
  readonly order: number;
  readonly owner: string;
  readonly run: () => void;
  isCancelled: boolean;
}

/** A timer of the code under test. Node.js gives the same methods. */
class VirtualTimer {
  #task: Task | undefined;
  readonly #start: () => Task;

  constructor(start: () => Task) {
    this.#start = start;
    this.#task = start();
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  hasRef(): boolean {
    return false;
  }

  refresh(): this {
    this.cancel();
    this.#task = this.#start();
    return this;
  }

  cancel(): void {
    if (this.#task) this.#task.isCancelled = true;
  }

  [Symbol.dispose](): void {
    this.cancel();
  }
}

type Callback = (...args: unknown[]) => void;

const real = {
  setTimeout: globalThis.setTimeout,
  clearTimeout: globalThis.clearTimeout,
  setInterval: globalThis.setInterval,
  clearInterval: globalThis.clearInterval,
  setImmediate: globalThis.setImmediate,
  clearImmediate: globalThis.clearImmediate,
  now: Date.now,
  performanceNow: performance.now,
  random: Math.random,
  abortAfter: AbortSignal.timeout,
};

/** Virtual time begins here, so that no code takes a small number for "never". */
const startMs = 1_000_000_000;

/**
 * The time of a simulation. Nothing waits: when all that is due has run, the clock jumps to the next task.
 *
 * Each task belongs to a participant, such as an instance. A participant can be frozen (its tasks wait) or killed (its
 * tasks never run). All code that runs because of a task belongs to the same participant, up to the next task.
 */
export class VirtualClock {
  #nowMs = startMs;
  #order = 0;
  #owner = 'world';
  /** A binary heap by time, then by order. */
  readonly #heap: Task[] = [];
  readonly #frozen = new Map<string, Task[]>();
  readonly #killed = new Set<string>();
  /** The number of tasks that have run. */
  steps = 0;

  /** The virtual time in milliseconds. */
  get nowMs(): number {
    return this.#nowMs;
  }

  /** The virtual time since the start, in milliseconds. */
  get elapsedMs(): number {
    return this.#nowMs - startMs;
  }

  /** How many tasks of a participant are still due. */
  tasksOf(owner: string): number {
    return this.#heap.filter((task) => task.owner === owner && !task.isCancelled).length;
  }

  /** Replaces the timers, clocks and random numbers of this process until the returned function is called. */
  install(random: () => number): () => void {
    const start = (run: Callback, delayMs: unknown, args: unknown[], everyMs?: number): VirtualTimer => {
      const owner = this.#owner;
      const waitMs = Math.max(1, Number(delayMs) || 0);
      const timer: VirtualTimer = new VirtualTimer(() =>
        this.#add(waitMs, owner, () => {
          if (everyMs !== undefined) timer.refresh();
          run(...args);
        }),
      );
      return timer;
    };
    const cancel = (timer: unknown): void => {
      if (timer instanceof VirtualTimer) timer.cancel();
    };
    Object.assign(globalThis, {
      setTimeout: (run: Callback, ms?: number, ...args: unknown[]) => start(run, ms, args),
      setInterval: (run: Callback, ms?: number, ...args: unknown[]) => start(run, ms, args, ms),
      setImmediate: (run: Callback, ...args: unknown[]) => {
        const task = this.#add(0, this.#owner, () => run(...args));
        return { cancel: () => (task.isCancelled = true) };
      },
      clearTimeout: cancel,
      clearInterval: cancel,
      clearImmediate: (immediate?: { cancel(): void }) => immediate?.cancel(),
    });
    Date.now = () => Math.floor(this.#nowMs);
    performance.now = () => this.#nowMs;
    Math.random = random;
    AbortSignal.timeout = (ms) => {
      const controller = new AbortController();
      setTimeout(() => controller.abort(new DOMException('The operation timed out', 'TimeoutError')), ms);
      return controller.signal;
    };
    return () => {
      const { now, performanceNow, random: realRandom, abortAfter, ...timers } = real;
      Object.assign(globalThis, timers);
      Date.now = now;
      performance.now = performanceNow;
      Math.random = realRandom;
      AbortSignal.timeout = abortAfter;
    };
  }

  /** Runs a function later, on behalf of a participant. */
  after(delayMs: number, owner: string, run: () => void): void {
    this.#add(delayMs, owner, run);
  }

  /** Runs a function now, on behalf of a participant, inside the task of another one. */
  as<T>(owner: string, run: () => T): T {
    const before = this.#owner;
    this.#owner = owner;
    try {
      return run();
    } finally {
      this.#owner = before;
    }
  }

  /** Runs a function as if it were an earlier time, up to its first wait. */
  asOf<T>(earlierMs: number, run: () => T): T {
    const nowMs = this.#nowMs;
    this.#nowMs = earlierMs;
    try {
      return run();
    } finally {
      this.#nowMs = nowMs;
    }
  }

  freeze(owner: string): void {
    if (!this.#frozen.has(owner)) this.#frozen.set(owner, []);
  }

  /** Lets a frozen participant run again: everything that became due meanwhile is due now. */
  thaw(owner: string): void {
    const waiting = this.#frozen.get(owner) ?? [];
    this.#frozen.delete(owner);
    for (const task of waiting) if (!task.isCancelled) this.#add(0, owner, task.run, task);
  }

  kill(owner: string): void {
    this.#killed.add(owner);
    this.#frozen.delete(owner);
  }

  /** Runs everything that is due within this time. */
  async pass(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms;
    await settle();
    for (let task = this.#heap[0]; task !== undefined && task.atMs <= untilMs; task = this.#heap[0]) {
      this.#pop();
      if (task.isCancelled || this.#killed.has(task.owner)) continue;
      const waiting = this.#frozen.get(task.owner);
      if (waiting) {
        waiting.push(task);
        continue;
      }
      this.#nowMs = Math.max(this.#nowMs, task.atMs);
      this.#owner = task.owner;
      this.steps += 1;
      task.run();
      await settle();
      this.#owner = 'world';
    }
    this.#nowMs = untilMs;
  }

  /** Adds a task. A thawed task keeps its identity, so that its timer can still cancel it. */
  #add(delayMs: number, owner: string, run: () => void, thawed?: Task): Task {
    this.#order += 1;
    const isCancelled = (): boolean => thawed?.isCancelled ?? false;
    const task: Task = {
      atMs: this.#nowMs + delayMs,
      order: this.#order,
      owner,
      run: thawed ? () => isCancelled() || run() : run,
      isCancelled: false,
    };
    const heap = this.#heap;
    let at = heap.push(task) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(task, heap[parent] as Task)) break;
      heap[at] = heap[parent] as Task;
      at = parent;
    }
    heap[at] = task;
    return task;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1] as Task, heap[child] as Task)) child += 1;
      if (!isBefore(heap[child] as Task, last)) break;
      heap[at] = heap[child] as Task;
      at = child;
    }
    heap[at] = last;
  }
}

const isBefore = (one: Task, other: Task): boolean =>
  one.atMs < other.atMs || (one.atMs === other.atMs && one.order < other.order);

/** Runs all microtasks that are due, and those that they cause. */
const settle = (): Promise<void> => new Promise((resolve) => real.setImmediate(resolve));
