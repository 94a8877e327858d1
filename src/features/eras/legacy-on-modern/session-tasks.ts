import { randomUUID } from 'node:crypto';
import { entryOf, type Reason, type RequestId } from '../../../core/protocol/faults.ts';
import { findRange, replaceParts, scalarAt } from '../../../core/protocol/json.ts';
import { withId } from '../../../core/protocol/message/changed-message.ts';
import { putMembers } from '../../../core/protocol/message/edit-members.ts';
import { createFaultResponse } from '../../../core/protocol/message/gateway-fault.ts';
import {
  createMessage,
  type Message,
  memberValue,
  readGatewayMessage,
  requestId,
} from '../../../core/protocol/message/message.ts';
import type { HeldOutput } from './held-output.ts';

/** The part of a translator's output that a call writes to. */
export type CallOutput = Pick<HeldOutput, 'notify' | 'respond' | 'abandon'>;

export interface SessionTasksOptions {
  readonly output: CallOutput;
  /** Reserves memory for a result; false if there is none left. A negative number gives memory back. */
  reserveBytes(bytes: number): boolean;
}

/** The tasks of one session that run or are kept (P8). */
const maxTasks = 100;

/** How long a task is kept from its beginning: as its client asks, and at most this long, in milliseconds. */
const maxTtlMs = 3_600_000;

/** How often a client should ask for the state of a task, in milliseconds. */
const pollInterval = 1_000;

/** The member of `_meta` that names the task of a message (2025-11-25, basic/utilities/tasks). */
const relatedTaskKey = 'io.modelcontextprotocol/related-task';

/** The id of a task says when it began and for how long it is kept, so that a later owner of the session knows its form. */
const idOf = (createdAt: number, ttl: number): string =>
  `gangway-${createdAt.toString(36)}-${ttl.toString(36)}-${randomUUID()}`;
const idForm = /^gangway-([0-9a-z]{1,11})-([0-9a-z]{1,11})-[0-9a-f-]{36}$/;

/**
 * A task that was lost with an earlier owner of the session or with its server, as its client sees it; undefined for an id
 * that is not of such a task, or whose time is over.
 */
function lostTask(taskId: string): object | undefined {
  const [createdAt, ttl] = (idForm.exec(taskId)?.slice(1) ?? []).map((part) => Number.parseInt(part, 36));
  if (createdAt === undefined || ttl === undefined || ttl > maxTtlMs) return undefined;
  const now = Date.now();
  if (createdAt + ttl <= now || createdAt > now + maxTtlMs) return undefined;
  const statusMessage = entryOf('outcome_unknown').message;
  const times = { createdAt: new Date(createdAt).toISOString(), lastUpdatedAt: new Date(now).toISOString() };
  return { taskId, status: 'failed', statusMessage, ...times, ttl, pollInterval };
}

type Status = 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled';

/**
 * The tasks of 2025-11-25 that a session has asked for at a server of the modern era. The server sees a call. What it
 * sends goes to the requests for the result of the task, as this revision wants: questions, and the result itself.
 */
export class SessionTasks {
  readonly #options: SessionTasksOptions;
  readonly #tasks = new Map<string, SessionTask>();
  #last = 0;

  constructor(options: SessionTasksOptions) {
    this.#options = options;
  }

  /** Makes a task of a request, and answers it. Undefined if there are too many. */
  begin(request: Message): SessionTask | undefined {
    const id = requestId(request);
    if (this.#tasks.size >= maxTasks) {
      this.#options.output.abandon(id, 'too_many_calls');
      return undefined;
    }
    this.#last += 1;
    const wanted = scalarAt(request.text, ['params', 'task', 'ttl']);
    const ttl = typeof wanted === 'number' && wanted > 0 ? Math.min(wanted, maxTtlMs) : maxTtlMs;
    const task = new SessionTask(`task ${this.#last}`, ttl, this.#options, () => this.#tasks.delete(task.taskId));
    this.#tasks.set(task.taskId, task);
    this.#options.output.respond(id, createMessage({ id, result: { task: task.description } }));
    return task;
  }

  /** Answers a request about tasks. */
  serve(request: Message): void {
    const { output } = this.#options;
    const id = requestId(request);
    if (request.method === 'tasks/list') {
      const tasks = Array.from(this.#tasks.values(), ({ description }) => description);
      return output.respond(id, createMessage({ id, result: { tasks } }));
    }
    const taskId = String(memberValue(request, 'params', 'taskId'));
    const task = this.#tasks.get(taskId);
    if (task === undefined) return output.respond(id, answerWithout(request, lostTask(taskId)));
    if (request.method === 'tasks/result') return task.await(id);
    // A task that has ended cannot be cancelled (2025-11-25, "Task Cancellation").
    if (request.method === 'tasks/cancel' && !task.cancel())
      return output.respond(id, createFaultResponse('unknown_task', id));
    output.respond(id, createMessage({ id, result: task.description }));
  }

  /** A question of a task is answered. */
  answered(question: RequestId): void {
    for (const task of this.#tasks.values()) task.answered(question);
  }

  /** A client no longer waits for the result of a task. The task goes on. */
  stopWaiting(id: RequestId): void {
    for (const task of this.#tasks.values()) task.stopWaiting(id);
  }

  close(): void {
    for (const task of this.#tasks.values()) task.close();
  }
}

/** The answer to a request about a task that is not here. */
function answerWithout({ id, method }: Message, lost: object | undefined): Message {
  const own = id as RequestId;
  if (lost === undefined || method === 'tasks/cancel') return createFaultResponse('unknown_task', own);
  if (method === 'tasks/result') return createFaultResponse('outcome_unknown', own);
  return createMessage({ id: own, result: lost });
}

/** One task, as the output of its call. */
export class SessionTask implements CallOutput {
  readonly taskId: string;
  /** The id of its call at the translator, which no request of the client has. */
  readonly callId: RequestId;
  /** Cancels its call. */
  onCancelled: () => void = () => undefined;
  readonly #options: SessionTasksOptions;
  readonly #ttl: number;
  readonly #createdAt: string;
  readonly #timer: NodeJS.Timeout;
  #updatedAt: string;
  #status: Status = 'working';
  #statusMessage: string | undefined;
  #end: Message | undefined;
  #heldBytes = 0;
  readonly #waiters: RequestId[] = [];
  readonly #questions = new Set<RequestId>();
  /** The questions that wait for a request for the result. */
  readonly #held: Message[] = [];

  constructor(callId: RequestId, ttl: number, options: SessionTasksOptions, onGone: () => void) {
    this.callId = callId;
    this.#ttl = ttl;
    this.#options = options;
    const now = Date.now();
    this.taskId = idOf(now, ttl);
    this.#createdAt = new Date(now).toISOString();
    this.#updatedAt = this.#createdAt;
    this.#timer = setTimeout(() => {
      this.cancel();
      this.close();
      onGone();
    }, ttl).unref();
  }

  /** The task as its client sees it. */
  get description(): object {
    return {
      taskId: this.taskId,
      status: this.#status,
      ...(this.#statusMessage !== undefined && { statusMessage: this.#statusMessage }),
      createdAt: this.#createdAt,
      lastUpdatedAt: this.#updatedAt,
      ttl: this.#ttl,
      pollInterval,
    };
  }

  notify(message: Message): boolean {
    const related = JSON.stringify({ taskId: this.taskId });
    const named = readGatewayMessage(putMembers(message, 'meta', [[relatedTaskKey, related]]));
    if (message.kind !== 'request') return this.#options.output.notify(named, this.#waiters.at(-1));
    this.#questions.add(message.id as RequestId);
    this.#become('input_required');
    if (this.#waiters.length > 0) return this.#options.output.notify(named, this.#waiters.at(-1));
    this.#held.push(named);
    return true;
  }

  respond(_: RequestId, response: Message): void {
    const { length } = response.text;
    if (!this.#options.reserveBytes(length)) return this.abandon(this.callId, 'event_too_large');
    this.#heldBytes = length;
    const isFailed = response.isError || scalarAt(response.text, ['result', 'isError']) === true;
    this.#finish(isFailed ? 'failed' : 'completed', this.#named(response));
  }

  abandon(_: RequestId, reason: Reason): void {
    this.#finish('failed', createFaultResponse(reason, this.callId));
  }

  /** Answers a request for the result, now or when there is one. */
  await(id: RequestId): void {
    if (this.#end !== undefined) return this.#options.output.respond(id, withId(this.#end, id));
    this.#waiters.push(id);
    for (const question of this.#held.splice(0)) this.#options.output.notify(question, id);
  }

  /** Cancels the task. False if it has ended. */
  cancel(): boolean {
    if (this.#end !== undefined) return false;
    this.#finish('cancelled', createFaultResponse('cancelled', this.callId));
    this.onCancelled();
    return true;
  }

  answered(question: RequestId): void {
    if (this.#questions.delete(question) && this.#questions.size === 0 && this.#end === undefined)
      this.#become('working');
  }

  stopWaiting(id: RequestId): void {
    const index = this.#waiters.indexOf(id);
    if (index >= 0) this.#waiters.splice(index, 1);
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#options.reserveBytes(-this.#heldBytes);
    this.#heldBytes = 0;
  }

  #become(status: Status): void {
    this.#status = status;
    this.#updatedAt = new Date().toISOString();
  }

  #finish(status: Status, end: Message): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    this.#become(status);
    for (const id of this.#waiters.splice(0)) this.#options.output.respond(id, withId(end, id));
  }

  /** The result of the call, which names the task. */
  #named(response: Message): Message {
    const range = findRange(response.text, ['result']);
    if (typeof range !== 'object') return response;
    const member = `"${relatedTaskKey}":${JSON.stringify({ taskId: this.taskId })}`;
    const meta = findRange(response.text, ['result', '_meta']);
    const [start, by] =
      typeof meta === 'object' ? [meta.start + 1, `${member},`] : [range.start + 1, `"_meta":{${member}},`];
    return readGatewayMessage(replaceParts(response.text, [{ start, end: start, by }]));
  }
}
