import { scanList } from '../protocol/json/scan.ts';
import { scalarAt, valueAt } from '../protocol/json/splice.ts';
import { type Message, memberValue } from '../protocol/message/message.ts';
import { SparseMap } from '../util/sparse-map.ts';

/** What the answer to a request can tell of tasks: that one began, how one or several are, or that one is over. */
export type TaskUpdate = 'start' | 'state' | 'list' | 'result';

/** More unfinished tasks of one session are not remembered (P8): a peer can name as many as it likes. */
const maxTasks = 1_000;
/** The same for their ids. */
const maxTaskIdLength = 1_024;
/** Longer answers are not looked into: the state of a task is short, and `tasks/list` has pages. */
const maxReadBytes = 256 * 1024;

/** What says how a task is, unasked. */
export const taskStatus = 'notifications/tasks/status';

const newsByMethod: ReadonlyMap<string | undefined, TaskUpdate> = new Map([
  ['tasks/get', 'state'],
  ['tasks/cancel', 'state'],
  ['tasks/list', 'list'],
  ['tasks/result', 'result'],
]);

/** Requests that ask how a task is and are answered at once: what belongs to the task should not turn that into a stream. */
export const isPoll = (method: string): boolean => method === 'tasks/get' || method === 'tasks/cancel';

/** What the answer to a request can tell of tasks; undefined for all other requests. */
export function readTaskUpdate(request: Message): TaskUpdate | undefined {
  return newsByMethod.get(request.method) ?? (request.asksForTask ? 'start' : undefined);
}

/** A task as its owner shows it; nothing of it is certain. */
interface ShownTask {
  readonly taskId: unknown;
  readonly status: unknown;
  readonly ttl: unknown;
}

/** Where an answer shows a task, or several. */
const pathOf = { start: ['result', 'task'], state: ['result'], list: ['result', 'tasks'] } as const;

const taskIn = (text: Buffer): ShownTask => ({
  taskId: scalarAt(text, ['taskId']),
  status: scalarAt(text, ['status']),
  ttl: scalarAt(text, ['ttl']),
});

interface Unfinished {
  readonly startedAt: number;
  /** How long its owner keeps it; Infinity if it does not say. */
  readonly ttlMs: number;
}

/**
 * The unfinished tasks of one side of a session (2025-11-25, basic/utilities/tasks), as far as what passes tells of them. A
 * session with one is not idle, though nobody asks for the result yet: at most for the task's `ttl`, and for as long as a
 * request may take.
 */
export class Tasks {
  readonly #unfinished = new SparseMap<string, Unfinished>();
  #waiting: (() => void)[] = [];
  /** When the last of them was over, on the monotonic clock in milliseconds. */
  emptySince = Number.NEGATIVE_INFINITY;

  /** True if this task is known, and not to be over. */
  has(taskId: string | undefined): boolean {
    return taskId !== undefined && this.#unfinished.has(taskId);
  }

  /**
   * True if any is unfinished.
   * @param maxMs how long one may take, whatever its `ttl`
   */
  areUnfinished(maxMs: number): boolean {
    const now = performance.now();
    for (const [taskId, { startedAt, ttlMs }] of this.#unfinished) {
      const endsAt = startedAt + Math.min(ttlMs, maxMs);
      if (endsAt <= now) this.#remove(taskId, endsAt);
    }
    return this.#unfinished.size > 0;
  }

  /** A request was answered that can tell of tasks; `taskId` is what it asked about. */
  answered(news: TaskUpdate, taskId: string | undefined, response: Buffer): void {
    if (news === 'result') this.#finish(taskId);
    else if (response.length <= maxReadBytes) {
      const shown = valueAt(response, pathOf[news]);
      if (shown === undefined) return;
      if (news !== 'list') this.#learn(taskIn(shown));
      else
        for (const { start, end } of scanList(shown)?.slice(0, maxTasks) ?? [])
          this.#learn(taskIn(shown.subarray(start, end)));
    }
  }

  /** Its owner says how a task is. */
  update(notification: Message): void {
    const [taskId, status, ttl] = ['taskId', 'status', 'ttl'].map((key) => memberValue(notification, 'params', key));
    this.#learn({ taskId, status, ttl });
  }

  /** What had them is lost. */
  clear(): void {
    for (const taskId of [...this.#unfinished.keys()]) this.#finish(taskId);
  }

  /** Resolves when none is unfinished. */
  whenEmpty(): Promise<void> {
    if (this.#unfinished.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #learn({ taskId, status, ttl }: ShownTask): void {
    if (typeof taskId !== 'string') return;
    if (status !== 'working' && status !== 'input_required') return this.#finish(taskId);
    if (this.#unfinished.has(taskId)) return;
    if (this.#unfinished.size >= maxTasks || taskId.length > maxTaskIdLength) return;
    const ttlMs = typeof ttl === 'number' ? ttl : Number.POSITIVE_INFINITY;
    this.#unfinished.set(taskId, { startedAt: performance.now(), ttlMs });
  }

  #finish(taskId: string | undefined): void {
    if (taskId !== undefined) this.#remove(taskId, performance.now());
  }

  #remove(taskId: string, at: number): void {
    if (!this.#unfinished.delete(taskId)) return;
    this.emptySince = Math.max(this.emptySince, at);
    if (this.#unfinished.size === 0) for (const tell of this.#waiting.splice(0)) tell();
  }
}
