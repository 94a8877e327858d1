import type { CallAnswer } from '../../../../core/call/call-answer.ts';
import { parseOwn } from '../../../../core/protocol/json.ts';
import type { Message } from '../../../../core/protocol/message/message.ts';
import type { Values } from '../../../../core/store/shared/shared-data.ts';
import { tryStore } from '../../../../core/store/store-unavailable.ts';
import { detach } from '../../../../core/util/boundary.ts';
import type { CancelRequest } from './shared-calls.ts';
import {
  knowsTasks,
  readCreatedTask,
  readTaskIds,
  type TaskOwners,
  type TaskOwnership,
  type TaskRequester,
} from './task-owners.ts';

export interface TaskDirectoryOptions {
  /** The server's name, the same on all instances. */
  readonly topic: string;
  readonly values: Values;
  /** The longest time that a task may take, whatever its server says, in milliseconds. */
  readonly maxMs: number;
  /** A fault of the gateway itself. */
  onFailed(cause: unknown): void;
}

/** A subscription is reduced to the tasks that are known to belong to its client. */
const listenMethod = 'subscriptions/listen';

/** How long an owner is stored at most, and where the server gives no time to live. */
const maxOwnerMs = 7 * 24 * 3_600_000;

/**
 * Shares the owners of the tasks of one remote server between instances: any instance may be asked about a task that
 * another one began. The store's entry wins, since a server may reuse an id. While the store is away, the local entry
 * is used (P7).
 */
export class TaskDirectory {
  readonly #options: TaskDirectoryOptions;

  constructor(options: TaskDirectoryOptions) {
    this.#options = options;
  }

  /**
   * Sends a request once the owners of the tasks that it names are known. Its answer waits until all instances can know
   * of a task that the request began. A request that has nothing to do with tasks is sent at once.
   * @param known the local owners, which are updated from the store
   * @param send sends the request to the server
   * @returns the function that cancels the request
   */
  request(
    request: Message,
    answer: CallAnswer,
    requester: TaskRequester,
    localOwners: TaskOwners,
    send: (answer: CallAnswer) => CancelRequest,
  ): CancelRequest {
    const ids = readTaskIds(request);
    if (ids.length === 0) return send(knowsTasks(request) ? this.#recordingAnswer(answer, requester) : answer);
    let cancel: CancelRequest | undefined;
    let isGone = false;
    const proceed = (isStoreAvailable: boolean): void => {
      if (isGone) return;
      // Without the store this instance cannot tell that a task is unknown: its client would give up a task that other
      // instances know.
      const isInDoubt = !isStoreAvailable && request.method !== listenMethod && ids.some((id) => !localOwners.has(id));
      if (isInDoubt) answer.fault('store_unavailable');
      else cancel = send(answer);
    };
    detach('request', this.#updateOwners(ids, localOwners).then(proceed), () => answer.fault('internal'));
    return (reason) => {
      isGone = true;
      cancel?.(reason);
    };
  }

  /** Updates the local owners from the store. Returns false if the store is away. */
  async #updateOwners(ids: readonly string[], localOwners: TaskOwners): Promise<boolean> {
    const { values, maxMs } = this.#options;
    return this.#tryStore(async () => {
      const found = await Promise.all(ids.map((id) => values.get('owner', this.#storeKey(id))));
      for (const [index, text] of found.entries()) {
        // A task that the store lacks may have begun while the store was away.
        if (text === undefined) continue;
        const owned = parseOwn(text) as Pick<TaskOwnership, 'owner' | 'needs'>;
        localOwners.set(ids[index] as string, { ...owned, untilMs: performance.now() + maxMs });
      }
    });
  }

  #recordingAnswer(answer: CallAnswer, requester: TaskRequester): CallAnswer {
    const { values } = this.#options;
    return {
      message: (notification) => answer.message(notification),
      response: (response, status) => {
        const task = readCreatedTask(response.text, requester, maxOwnerMs);
        if (task === undefined) return answer.response(response, status);
        const { owner, needs, untilMs } = task.owned;
        const forMs = Math.max(untilMs - performance.now(), 1);
        const storeOwner = (): Promise<void> =>
          values.set('owner', this.#storeKey(task.taskId), Buffer.from(JSON.stringify({ owner, needs })), forMs);
        const respond = (): void => answer.response(response, status);
        detach('request', this.#tryStore(storeOwner).then(respond), respond);
      },
      fault: (reason, data) => answer.fault(reason, data),
      report: answer.report,
    };
  }

  #tryStore(operation: () => Promise<void>): Promise<boolean> {
    return tryStore(operation, (cause) => this.#options.onFailed(cause));
  }

  #storeKey(taskId: string): string {
    return `task ${this.#options.topic} ${taskId}`;
  }
}
