import type { ModernCallAnswer } from '../../call/modern-answer.ts';
import type { Message } from '../../protocol/message/message.ts';
import type { TaskOwnerStore } from '../../store/shared/owners.ts';
import { StoreUnavailable } from '../../store/store-unavailable.ts';
import { detach } from '../../util/boundary.ts';
import type { CancelRequest } from './shared-calls.ts';
import {
  knowsTasks,
  readCreatedTask,
  readTaskIds,
  type TaskOwners,
  type TaskOwnership,
  type TaskRequester,
} from './task-owners.ts';

/** What the directory of the tasks of one server needs. */
export interface TaskDirectoryOptions {
  /** The server, as all instances name it. */
  readonly topic: string;
  readonly owners: TaskOwnerStore;
  /** How long a task may take, whatever its server says, in milliseconds. */
  readonly maxMs: number;
  /** A fault of the gateway itself. */
  onFailed(cause: unknown): void;
}

/** A subscription is cut to the tasks that are known to be its client's. */
const listen = 'subscriptions/listen';

/** A server that says nothing, or more, of how long it keeps a task: its owner is known for so long. */
const longestMs = 7 * 24 * 3_600_000;

/**
 * Whose the tasks are of a server that runs by itself, for all instances: any of them may be asked about a task that another one
 * began. What the store knows counts, since a server may use an id again; while it is away, what is known here (P7).
 */
export class TaskDirectory {
  readonly #options: TaskDirectoryOptions;

  constructor(options: TaskDirectoryOptions) {
    this.#options = options;
  }

  /**
   * Sends a request when it is known whose the tasks are that it names, and has its answer come when all instances know of a task
   * that it began. At once for a request that has nothing to do with tasks.
   * @param known what is known here, which is brought up to date
   * @param send hands the request to the server
   * @returns what to call when its client does not wait any more
   */
  request(
    request: Message,
    answer: ModernCallAnswer,
    asker: TaskRequester,
    known: TaskOwners,
    send: (answer: ModernCallAnswer) => CancelRequest,
  ): CancelRequest {
    const ids = readTaskIds(request);
    if (ids.length === 0) return send(knowsTasks(request) ? this.#telling(answer, asker) : answer);
    let cancel: CancelRequest | undefined;
    let isGone = false;
    const go = (isStoreThere: boolean): void => {
      if (isGone) return;
      // An instance that cannot ask must not call a task unknown that others know: its client would give the task up.
      const isInDoubt = !isStoreThere && request.method !== listen && ids.some((id) => !known.has(id));
      if (isInDoubt) answer.fault('store_unavailable');
      else cancel = send(answer);
    };
    detach('request', this.#learn(ids, known).then(go), () => answer.fault('internal'));
    return (reason) => {
      isGone = true;
      cancel?.(reason);
    };
  }

  /** @returns false if the store could not be asked */
  async #learn(ids: readonly string[], known: TaskOwners): Promise<boolean> {
    const { owners, maxMs } = this.#options;
    return this.#ifThere(async () => {
      const found = await Promise.all(ids.map((id) => owners.find(this.#nameOf(id))));
      for (const [index, text] of found.entries()) {
        // What the store does not have may have been begun while it was away.
        if (text === undefined) continue;
        const owned = JSON.parse(text.toString()) as Pick<TaskOwnership, 'owner' | 'needs'>;
        known.set(ids[index] as string, { ...owned, untilMs: performance.now() + maxMs });
      }
    });
  }

  #telling(answer: ModernCallAnswer, asker: TaskRequester): ModernCallAnswer {
    const { owners } = this.#options;
    return {
      message: (text) => answer.message(text),
      response: (text, status, isError) => {
        const task = readCreatedTask(text, asker, longestMs);
        if (task === undefined) return answer.response(text, status, isError);
        const { owner, needs, untilMs } = task.owned;
        const forMs = Math.max(untilMs - performance.now(), 1);
        const tell = (): Promise<void> =>
          owners.set(this.#nameOf(task.taskId), Buffer.from(JSON.stringify({ owner, needs })), forMs);
        const respond = (): void => answer.response(text, status, isError);
        detach('request', this.#ifThere(tell).then(respond), respond);
      },
      fault: (reason, data) => answer.fault(reason, data),
      awaitsStart: () => answer.awaitsStart?.(),
      started: () => answer.started?.(),
    };
  }

  async #ifThere(ask: () => Promise<void>): Promise<boolean> {
    try {
      await ask();
      return true;
    } catch (cause) {
      if (!(cause instanceof StoreUnavailable)) this.#options.onFailed(cause);
      return false;
    }
  }

  #nameOf(taskId: string): string {
    return `task ${this.#options.topic} ${taskId}`;
  }
}
