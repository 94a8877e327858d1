import { scalarAt, scanList, valueAt } from '../protocol/json.ts';
import { type Message, memberValue } from '../protocol/message/message.ts';
import { methodOf } from '../protocol/methods/methods.ts';
import { SparseMap } from '../util/sparse-map.ts';

/**
 * The information about tasks in an answer: the start of a task, the state of one or of several, or a task's result.
 */
export type TaskUpdate = 'start' | 'state' | 'list' | 'result';

/** How many unfinished tasks of one session are remembered (P8). A peer can name as many as it likes. */
const maxTasks = 1_000;
/** The longest id of a remembered task (P8). */
const maxTaskIdLength = 1_024;
/** The longest answer that is read: the state of a task is short, and `tasks/list` has pages. */
const maxReadBytes = 256 * 1024;

/** The notification with which a server reports the state of a task unasked. */
export const taskStatus = 'notifications/tasks/status';

/**
 * True for a request about a task that is answered at once. The task's messages should not turn that answer into a
 * stream.
 */
export const isPoll = (method: string): boolean => methodOf(method).taskNews === 'state';

/** Returns the information about tasks that the answer to a request may contain; undefined for none. */
export function readTaskUpdate(request: Message): TaskUpdate | undefined {
  return methodOf(request.method).taskNews ?? (request.asksForTask ? 'start' : undefined);
}

/** A task as its owner describes it. The members may have any type. */
interface TaskDescription {
  readonly taskId: unknown;
  readonly status: unknown;
  readonly ttl: unknown;
}

/** The path of the task or tasks in each kind of answer. */
const taskPaths = { start: ['result', 'task'], state: ['result'], list: ['result', 'tasks'] } as const;

const readTask = (text: Buffer): TaskDescription => ({
  taskId: scalarAt(text, ['taskId']),
  status: scalarAt(text, ['status']),
  ttl: scalarAt(text, ['ttl']),
});

/**
 * The unfinished tasks of one side of a session (2025-11-25, basic/utilities/tasks), as far as the session's messages
 * show them. A session with an unfinished task is not idle, even if nobody has requested the result yet. That lasts at
 * most for the task's `ttl`, and for the time that a request may take.
 */
export class Tasks {
  /** By their ids. `ttlMs` says how long the owner keeps the task; Infinity if the owner does not say. */
  readonly #unfinished = new SparseMap<string, { readonly startedAt: number; readonly ttlMs: number }>();
  /** Undefined for none. */
  #emptyListeners: (() => void)[] | undefined;
  /** The time at which the last task finished, on the monotonic clock in milliseconds. */
  emptySince = Number.NEGATIVE_INFINITY;

  /** True if this task is known to be unfinished. */
  has(taskId: string | undefined): boolean {
    return taskId !== undefined && this.#unfinished.has(taskId);
  }

  /**
   * Removes expired tasks, and returns true if a task is unfinished.
   * @param maxMs how long a task may take, whatever its `ttl`
   */
  areUnfinished(maxMs: number): boolean {
    const now = performance.now();
    for (const [taskId, { startedAt, ttlMs }] of this.#unfinished) {
      const endsAt = startedAt + Math.min(ttlMs, maxMs);
      if (endsAt <= now) this.#remove(taskId, endsAt);
    }
    return this.#unfinished.size > 0;
  }

  /** Reads the answer to a request about tasks; `taskId` is the task that the request names. */
  answered(kind: TaskUpdate, taskId: string | undefined, response: Buffer): void {
    if (kind === 'result') this.#finish(taskId);
    else if (response.length <= maxReadBytes) {
      const value = valueAt(response, taskPaths[kind]);
      if (value === undefined) return;
      if (kind !== 'list') this.#learn(readTask(value));
      else
        for (const { start, end } of scanList(value)?.slice(0, maxTasks) ?? [])
          this.#learn(readTask(value.subarray(start, end)));
    }
  }

  /** Reads a notification in which the owner of a task reports its state. */
  update(notification: Message): void {
    const [taskId, status, ttl] = ['taskId', 'status', 'ttl'].map((key) => memberValue(notification, 'params', key));
    this.#learn({ taskId, status, ttl });
  }

  /** Removes all tasks, since their owner was lost. */
  clear(): void {
    for (const taskId of [...this.#unfinished.keys()]) this.#finish(taskId);
  }

  /** Resolves when no task is unfinished. */
  whenEmpty(): Promise<void> {
    if (this.#unfinished.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#emptyListeners ??= [];
      this.#emptyListeners.push(resolve);
    });
  }

  #learn({ taskId, status, ttl }: TaskDescription): void {
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
    if (this.#unfinished.size > 0) return;
    const listeners = this.#emptyListeners ?? [];
    this.#emptyListeners = undefined;
    for (const notify of listeners) notify();
  }
}
