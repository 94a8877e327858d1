import { hasAllScopes } from '../../../../core/auth/scopes/authorization.ts';
import type { Reason } from '../../../../core/protocol/faults.ts';
import { findRange, readScalar, replaceParts, scalarAt, scanList, valueAt } from '../../../../core/protocol/json.ts';
import { changedMessage } from '../../../../core/protocol/message/changed-message.ts';
import { type Message, memberRange, memberValue } from '../../../../core/protocol/message/message.ts';
import { clientCapabilitiesKey } from '../../../../core/protocol/modern/envelope.ts';
import type { Principal } from '../../../../core/protocol/principal.ts';

/** The sender of a request, where the gateway knows its users. */
export interface TaskRequester {
  readonly principal: Principal;
  /** The scopes of the request's credentials; absent if they allow everything. */
  readonly scopes?: ReadonlySet<string> | undefined;
  /** The scopes that the request needs; absent for none. */
  readonly needs?: readonly string[] | undefined;
}

/** The owner of a task. */
export interface TaskOwnership {
  /** The owner's `principalKey`. */
  readonly owner: string;
  readonly needs: readonly string[];
  /** The server may work on the task until then, on the monotonic clock in milliseconds. */
  readonly untilMs: number;
}

/** How many tasks are remembered, of one owner and of all (P8). The oldest task beyond is unknown to everybody. */
const maxTasksPerOwner = 1_000;
const maxTasks = 50_000;
/** A task with a longer id is not remembered (P8). */
const maxIdLength = 1_024;

/** Prefix of the task extension's methods, each about one task (2026-07-28, io.modelcontextprotocol/tasks). */
const taskMethodPrefix = 'tasks/';

/**
 * How many tasks of one subscription are read, and how many bytes of their list (P8). A longer list counts as empty.
 */
const maxFilterIds = 500;
const maxFilterBytes = 256 * 1_024;

const listedTasks = ['params', 'notifications', 'taskIds'];

/**
 * Knows the owners of one server's tasks (P11). A task is only for the user who began it, but the server does not know
 * its users. So the gateway remembers who began a task, and with which scopes. For everybody else, and for an unknown
 * id, there is no task.
 */
export class TaskOwners {
  readonly #byId = new Map<string, TaskOwnership>();
  readonly #counts = new Map<string, number>();

  /** Returns why a request must not reach the server: it is about a task that its sender does not own, or about none. */
  refusal(request: Message, requester: TaskRequester): Reason | undefined {
    const { method } = request;
    if (method?.startsWith(taskMethodPrefix) !== true) return undefined;
    return this.ownsNamedTask(request, requester) ? undefined : 'unknown_task';
  }

  /** True if a message names a task that this sender owns. */
  ownsNamedTask(message: Message, requester: TaskRequester): boolean {
    return this.#isOwn(namedTask(message), requester);
  }

  /** True if the sender began the task, and the credentials allow what the task needed. */
  #isOwn(taskId: string | undefined, { principal, scopes }: TaskRequester): boolean {
    const owned = taskId === undefined ? undefined : this.#byId.get(taskId);
    return owned !== undefined && owned.owner === principalKey(principal) && hasAllScopes({ scopes }, owned.needs);
  }

  /**
   * Returns a subscription without the tasks that its client does not own: the answer is that of a server that does not
   * know them.
   * @param request the request as the server is to get it
   */
  withOwnTasks(request: Message, requester: TaskRequester): Message {
    const { text } = request;
    const range = findRange(text, listedTasks);
    if (typeof range !== 'object') return request;
    const listed = text.subarray(range.start, range.end);
    const own = readIds(listed).filter((id) => this.#isOwn(id, requester));
    return changedMessage(request, replaceParts(text, [{ ...range, by: JSON.stringify(own) }]), {});
  }

  /**
   * Records the task that a response says was begun, for the sender of the request.
   * @param maxMs the longest time that a task may take, whatever its server says
   */
  recordTask(response: Buffer, requester: TaskRequester, maxMs: number): void {
    const task = readCreatedTask(response, requester, maxMs);
    if (task !== undefined) this.set(task.taskId, task.owned);
  }

  /** True if the task's owner is known here. */
  has(taskId: string): boolean {
    return this.#byId.has(taskId);
  }

  /** Sets the owner of a task. */
  set(taskId: string, owned: TaskOwnership): void {
    this.#forget(taskId);
    const { owner } = owned;
    const count = this.#counts.get(owner) ?? 0;
    if (count >= maxTasksPerOwner) this.#forgetOldest((other) => other.owner === owner);
    else if (this.#byId.size >= maxTasks) this.#forgetOldest(() => true);
    this.#byId.set(taskId, owned);
    this.#counts.set(owner, (this.#counts.get(owner) ?? 0) + 1);
  }

  /** True if the server may still work on one of the tasks. */
  areUnfinished(nowMs: number): boolean {
    for (const { untilMs } of this.#byId.values()) if (untilMs > nowMs) return true;
    return false;
  }

  /** Forgets all tasks: their process has ended. */
  clear(): void {
    this.#byId.clear();
    this.#counts.clear();
  }

  #forgetOldest(matches: (owned: TaskOwnership) => boolean): void {
    for (const [taskId, owned] of this.#byId) if (matches(owned)) return this.#forget(taskId);
  }

  #forget(taskId: string): void {
    const owned = this.#byId.get(taskId);
    if (owned === undefined) return;
    this.#byId.delete(taskId);
    const count = (this.#counts.get(owned.owner) ?? 0) - 1;
    if (count > 0) this.#counts.set(owned.owner, count);
    else this.#counts.delete(owned.owner);
  }
}

/**
 * Returns the task that a response says was begun, owned by the sender of the request; undefined for any other
 * response.
 * @param maxMs the longest time that a task may take, whatever its server says
 */
export function readCreatedTask(
  response: Buffer,
  { principal, needs = [] }: TaskRequester,
  maxMs: number,
): { readonly taskId: string; readonly owned: TaskOwnership } | undefined {
  if (scalarAt(response, ['result', 'resultType']) !== 'task') return undefined;
  const taskId = asTaskId(scalarAt(response, ['result', 'taskId']));
  if (taskId === undefined) return undefined;
  const ttlMs = scalarAt(response, ['result', 'ttlMs']);
  const isGiven = typeof ttlMs === 'number' && ttlMs >= 0;
  const untilMs = performance.now() + (isGiven ? Math.min(ttlMs, maxMs) : maxMs);
  return { taskId, owned: { owner: principalKey(principal), needs, untilMs } };
}

/** Returns the tasks that a request names: the one that it is about, or those that a subscription is for. */
export function readTaskIds(request: Message): readonly string[] {
  const { method, text } = request;
  if (method?.startsWith(taskMethodPrefix) === true) {
    const id = namedTask(request);
    return id === undefined ? [] : [id];
  }
  const listed = method === 'subscriptions/listen' ? valueAt(text, listedTasks) : undefined;
  return listed === undefined ? [] : readIds(listed);
}

function readIds(listed: Buffer): readonly string[] {
  const ranges = listed.length <= maxFilterBytes ? (scanList(listed) ?? []) : [];
  const ids = ranges.slice(0, maxFilterIds).map((each) => asTaskId(readScalar(listed, each)));
  return ids.filter((id) => id !== undefined);
}

/** True if the client declares support for tasks: only its requests may begin one. */
export function knowsTasks(request: Message): boolean {
  const range = memberRange(request, 'meta', clientCapabilitiesKey);
  return range !== undefined && request.text.subarray(range.start, range.end).includes('tasks');
}

/** Returns one text for each principal and mark of credentials. The lengths keep the parts apart. */
export const principalKey = ({ issuer, subject, client, credentials = '' }: Principal): string =>
  `${issuer.length} ${subject.length} ${client.length} ${issuer}${subject}${client}${credentials}`;

/** The task that a message is about. */
const namedTask = (message: Message): string | undefined => asTaskId(memberValue(message, 'params', 'taskId'));

const asTaskId = (value: unknown): string | undefined =>
  typeof value === 'string' && value.length <= maxIdLength ? value : undefined;
