import type { CallSender, CallTasks, CallTasksOptions, ListedTasks } from '../../app/features/call-tasks.ts';
import { Answer } from '../../core/call/answer.ts';
import { LiveTarget } from '../../core/call/live-target.ts';
import type { RequestId } from '../../core/protocol/faults.ts';
import type { RequestClient } from '../../core/protocol/http/forwarded-headers.ts';
import type { ByteRange } from '../../core/protocol/json.ts';
import { findRange, readScalar, replaceParts, scanList } from '../../core/protocol/json.ts';
import { maxSubscriptions } from '../../core/protocol/kept-uris.ts';
import { type Message, memberRange, memberValue, readGatewayMessage } from '../../core/protocol/message/message.ts';
import { readClientFeatures } from '../../core/protocol/methods/askable.ts';
import { tasksExtension } from '../../core/protocol/methods/extensions.ts';
import { subscriptionIdKey } from '../../core/protocol/modern/renumber.ts';
import { readMembers } from '../../core/protocol/modern/retry.ts';
import type { Era } from '../../core/protocol/revisions.ts';
import type { Reply } from '../../core/reply/reply.ts';
import { StoreUnavailable } from '../../core/store/store-unavailable.ts';
import { detach } from '../../core/util/boundary.ts';
import { BoundedMap } from '../../core/util/bounded-map.ts';
import { type CallOpener, type GatewayTasks, isGatewayTask, type TaskClient } from './gateway-tasks.ts';
import type { TaskCall } from './running-task.ts';
import { declaredCapabilities, declaresTasks, withoutTasksDeclared } from './task-capabilities.ts';
import { pollIntervalMs, type TaskRecord, taskMembers, taskResponse } from './task-record.ts';

export interface ModernTasksOptions extends CallTasksOptions {
  readonly tasks: GatewayTasks;
}

/** The methods of tasks that a client of the modern era may use (SEP-2663). */
const taskMethods: ReadonlySet<string | undefined> = new Set(['tasks/get', 'tasks/update', 'tasks/cancel']);

/** How often a task may be asked about at one instance in this time (P8): forty times as often as its client was told. */
const pollWindowMs = 5_000;
const maxPolls = (40 * pollWindowMs) / pollIntervalMs;

/** The tasks whose polls are counted (P8). The count of another one begins again. */
const maxPolledTasks = 10_000;

/** The longest declaration of a client that is kept, to be compared with the next (P8). */
const maxComparedBytes = 4_096;

const requiredCapabilities = { extensions: { [tasksExtension]: {} } };

/**
 * The tasks that the gateway makes of calls to one server, for its clients of the modern era. A client that declares
 * the extension, and waits for long, gets a task in place of the answer, and asks for the result later, at any instance.
 */
export class ModernTasks implements CallTasks {
  readonly #options: ModernTasksOptions;
  /** The server has tasks of its own: it decides which calls become one. */
  #hasOwn = false;
  /** What the client of the newest call has declared. */
  #lastDeclared = { capabilities: Buffer.alloc(0), hasTasks: false };
  /** How often tasks were asked about lately. */
  readonly #polls = new BoundedMap<string, { since: number; count: number }>(maxPolledTasks);

  constructor(options: ModernTasksOptions) {
    this.#options = options;
  }

  /** True if the gateway itself answers this request: it is about a task of the gateway, or the server has no tasks. */
  serves(request: Message, era: Era): boolean {
    if (!taskMethods.has(request.method)) return false;
    return era === 'legacy' || isGatewayTask(memberValue(request, 'params', 'taskId'));
  }

  /** Answers a request about a task. */
  serve(request: Message, answer: Answer, origin: RequestClient, sender: CallSender): Promise<void> {
    return withStore(answer, async () => {
      if (!declaresTasks(request)) return answer.fault('missing_capability', { requiredCapabilities });
      const id = memberValue(request, 'params', 'taskId');
      if (request.method === 'tasks/get' && this.#isFlood(id)) return answer.fault('too_many_polls');
      const asker = await this.#askerOf(origin);
      const respond = await this.#answerTo(request, id, asker, this.#openerFor(sender));
      if (answer.isOver) return;
      // A server that has tasks of its own may be another gateway, whose ids look the same.
      if (respond === undefined && this.#isLeftToServer) sender.send(request, answer);
      else if (respond === undefined) answer.fault('unknown_task');
      else answer.response(readGatewayMessage(respond));
    });
  }

  /** True if a task is asked about far more often than its client was told. Each answer costs two reads of the store. */
  #isFlood(id: unknown): boolean {
    if (typeof id !== 'string') return false;
    const now = performance.now();
    let polls = this.#polls.get(id);
    if (polls === undefined || now - polls.since >= pollWindowMs) {
      polls = { since: now, count: 0 };
      this.#polls.set(id, polls);
    }
    polls.count += 1;
    return polls.count > maxPolls;
  }

  /** The text of the response; undefined if there is no such task. */
  async #answerTo(request: Message, id: unknown, asker: TaskClient, open: CallOpener): Promise<Buffer | undefined> {
    const { tasks } = this.#options;
    if (!isGatewayTask(id)) return undefined;
    const idText = idTextOf(request);
    if (request.method === 'tasks/get') {
      const record = await tasks.find(id, asker, open);
      return record && taskResponse(idText, 'complete', taskMembers(id, record));
    }
    if (request.method === 'tasks/cancel')
      return (await tasks.cancel(id, asker, open)) ? taskResponse(idText, 'complete') : undefined;
    const range = memberRange(request, 'params', 'inputResponses');
    const answers = range === undefined ? new Map() : readMembers(request.text.subarray(range.start, range.end));
    return (await tasks.answer(id, asker, answers, open)) ? taskResponse(idText, 'complete') : undefined;
  }

  /** The tasks that a subscription names; undefined if none of them is one of the gateway. */
  tasksOf(request: Message): ListedTasks | undefined {
    if (request.method !== 'subscriptions/listen') return undefined;
    const listed = taskIdsIn(request);
    return listed.some(({ id }) => isGatewayTask(id)) ? listed : undefined;
  }

  /**
   * Adds news of the gateway's tasks to a subscription (SEP-2663, "Task Status Notifications"). Its server gets the
   * subscription without these tasks.
   * @param listed what `tasksOf` has found
   */
  listen(
    request: Message,
    listed: ListedTasks,
    answer: Answer,
    reply: Reply,
    origin: RequestClient,
    sender: CallSender,
  ): Promise<void> {
    return withStore(answer, () => this.#listen(request, listed, answer, reply, origin, sender));
  }

  async #listen(
    request: Message,
    listed: ListedTasks,
    answer: Answer,
    reply: Reply,
    origin: RequestClient,
    sender: CallSender,
  ): Promise<void> {
    if (!declaresTasks(request)) return answer.fault('missing_capability', { requiredCapabilities });
    const { tasks } = this.#options;
    const open = this.#openerFor(sender);
    const asker = await this.#askerOf(origin);
    const own = listed
      .map(({ id }) => id)
      .filter(isGatewayTask)
      .slice(0, tasks.roomToWatch(asker));
    const found = await Promise.all(own.map((id) => tasks.find(id, asker, open)));
    const known = own.filter((_, index) => found[index] !== undefined);
    if (answer.isOver) return;
    const { observer } = answer;
    const idText = idTextOf(request);
    const isGone = (): boolean => answer.isOver || reply.isGone;
    answer.observer = {
      ...observer,
      message(message) {
        const observed = observer?.message?.(message) ?? message;
        if (message.method !== acknowledged) return observed;
        // Told after the acknowledgement, which is sent first.
        for (const id of known) {
          const tell = (record: TaskRecord): void => {
            if (!isGone()) answer.message(taskNotification(idText, taskMembers(id, record)));
          };
          const watched = tasks.watch(id, asker, tell, open);
          detach(
            'request',
            watched.then((stop) => (isGone() ? stop() : reply.onGone(stop))),
          );
        }
        return withTaskIds(observed, known);
      },
    };
    sender.send(withoutTasks(request, listed), answer);
  }

  /** True if this call becomes a task when its answer does not come in time. */
  mayMake(call: Message): boolean {
    return call.method === 'tools/call' && !this.#isLeftToServer && this.#declares(call);
  }

  /** As `declaresTasks`. A client declares the same with each call, so this mostly compares it with what it was. */
  #declares(call: Message): boolean {
    const capabilities = declaredCapabilities(call);
    if (capabilities === undefined) return false;
    if (capabilities.length > maxComparedBytes) return declaresTasks(call);
    if (!this.#lastDeclared.capabilities.equals(capabilities))
      this.#lastDeclared = { capabilities: Buffer.from(capabilities), hasTasks: declaresTasks(call) };
    return this.#lastDeclared.hasTasks;
  }

  /** True if the server decides which calls become tasks. */
  get #isLeftToServer(): boolean {
    return this.#hasOwn && !this.#options.isLocalToInstance;
  }

  /** Sends a call that may become a task. */
  call(call: Message, answer: Answer, origin: RequestClient, given: CallSender): Promise<void> | undefined {
    const { afterMs } = this.#options;
    const sender = this.#senderOf(given);
    if (afterMs === 0) return this.#callAsTask(call, answer, origin, sender);
    // The answer of a short call forgets this, with all that it holds.
    answer.whenLong(afterMs, () => detach('request', this.#begin(call, answer, origin, sender)));
    sender.send(call, answer);
    return undefined;
  }

  async #callAsTask(call: Message, answer: Answer, origin: RequestClient, sender: CallSender): Promise<void> {
    await this.#begin(call, answer, origin, sender);
    if (!answer.isOver) sender.send(call, answer);
  }

  /** Sends calls so that the server makes no tasks of its own, if only one instance would know them. */
  #senderOf(sender: CallSender): CallSender {
    if (!this.#options.isLocalToInstance) return sender;
    return { ...sender, send: (message, answer) => sender.send(withoutTasksDeclared(message), answer) };
  }

  /** The call of a task, whose answer goes on as the task. */
  #taskCall(request: Message, answer: Answer, { send, follow }: CallSender): TaskCall {
    const capabilities = declaredCapabilities(request);
    const { method = '' } = request;
    return {
      request,
      mayAsk: capabilities !== undefined && readClientFeatures(capabilities).size > 0,
      isHarmless: this.#options.reruns.mayNeed(request) && this.#options.reruns.allows({ method, request }, 'loss'),
      hasPoint: follow !== undefined,
      send: (message) => send(message, answer),
      point: () => answer.pointOf?.(),
      follow: (point) => follow?.(request, answer, point),
      cancel: () => answer.cancel(),
    };
  }

  /** Opens the calls of tasks that another instance has begun, for the client of a request. */
  #openerFor(given: CallSender): CallOpener {
    const sender = this.#senderOf(given);
    const { slowReaderMs, commitAfterMs } = this.#options;
    return (task, request) => {
      const ids = [request.id as RequestId];
      const options = { era: 'modern' as const, ids, commitAfterMs, continuation: task };
      return this.#taskCall(request, new Answer(new LiveTarget(slowReaderMs), options), sender);
    };
  }

  async #begin(call: Message, answer: Answer, origin: RequestClient, sender: CallSender): Promise<void> {
    const { tasks } = this.#options;
    const taskCall = this.#taskCall(call, answer, sender);
    const asker = await this.#askerOf(origin).catch(() => undefined);
    const task = asker && (await tasks.begin(asker, taskCall, () => !answer.isOver));
    if (task === undefined) return;
    const text = taskResponse(idTextOf(call), 'task', taskMembers(task.id, task.record));
    answer.continueAs(task, readGatewayMessage(text));
  }

  /** Declares tasks in the answer to `server/discover`. */
  advertise(response: Message): Message {
    const { text } = response;
    const capabilities = findRange(text, ['result', 'capabilities']);
    if (response.isError || typeof capabilities !== 'object') return response;
    const path = ['result', 'capabilities', 'extensions'];
    const extensions = findRange(text, path);
    if (extensions === 'duplicate_key') return response;
    if (typeof extensions === 'object' && findRange(text, [...path, tasksExtension]) !== 'absent') {
      this.#hasOwn = true;
      return response;
    }
    const member = `${JSON.stringify(tasksExtension)}:{}`;
    const [object, inside] =
      typeof extensions === 'object' ? [extensions, member] : [capabilities, `"extensions":{${member}}`];
    return putFirst(response, object, inside);
  }

  async #askerOf({ principal, forwarded }: RequestClient): Promise<TaskClient> {
    const { server, marks } = this.#options;
    const credentials = forwarded === undefined ? '' : await marks.markOf(server, forwarded);
    return { principal, credentials, server };
  }
}

/** Runs a step of a request that needs the store. */
async function withStore(answer: Answer, step: () => Promise<void>): Promise<void> {
  try {
    await step();
  } catch (cause) {
    if (!(cause instanceof StoreUnavailable)) throw cause;
    if (!answer.isOver) answer.fault('store_unavailable');
  }
}

const acknowledged = 'notifications/subscriptions/acknowledged';

/** The tasks that a subscription names, and where its text does so. */
function taskIdsIn(request: Message): ListedTasks {
  const filter = memberRange(request, 'params', 'notifications');
  if (filter === undefined) return [];
  const list = findRange(request.text.subarray(filter.start, filter.end), ['taskIds']);
  if (typeof list !== 'object') return [];
  const start = filter.start + list.start;
  const ranges = scanList(request.text.subarray(start, filter.start + list.end), maxSubscriptions) ?? [];
  return ranges.map((found) => {
    const range = { start: start + found.start, end: start + found.end };
    return { id: readScalar(request.text, range), range };
  });
}

/** The subscription without the tasks of the gateway, of which its server knows nothing. */
function withoutTasks(request: Message, listed: ListedTasks): Message {
  const kept = listed.filter(({ id }) => !isGatewayTask(id));
  const [first, last] = [listed[0]?.range, listed.at(-1)?.range];
  if (first === undefined || last === undefined) return request;
  const by = kept.map(({ range }) => request.text.toString('utf8', range.start, range.end)).join();
  return readGatewayMessage(replaceParts(request.text, [{ start: first.start, end: last.end, by }]));
}

/** The acknowledgement of a subscription, with the tasks of the gateway that it includes. */
function withTaskIds(acknowledgement: Message, ids: readonly string[]): Message {
  const { text } = acknowledgement;
  const filter = findRange(text, ['params', 'notifications']);
  if (typeof filter !== 'object') return acknowledgement;
  const known = findRange(text, ['params', 'notifications', 'taskIds']);
  const added = ids.map((id) => JSON.stringify(id)).join();
  return typeof known === 'object'
    ? putFirst(acknowledgement, known, added)
    : putFirst(acknowledgement, filter, `"taskIds":[${added}]`);
}

/** Puts text at the beginning of an object or list of a message. */
function putFirst({ text }: Message, { start, end }: ByteRange, added: string): Message {
  // One without members is short, and another one may be large.
  const isEmpty = end - start <= 64 && text.toString('latin1', start + 1, end - 1).trim() === '';
  const by = added === '' || isEmpty ? added : `${added},`;
  return readGatewayMessage(replaceParts(text, [{ start: start + 1, end: start + 1, by }]));
}

/** The news of a task, for the subscription with this id. */
const taskNotification = (idText: string, members: Buffer): Message =>
  readGatewayMessage(
    Buffer.concat([
      Buffer.from(
        `{"jsonrpc":"2.0","method":"notifications/tasks","params":{"_meta":{"${subscriptionIdKey}":${idText}},`,
      ),
      members,
      Buffer.from('}}'),
    ]),
  );

const idTextOf = (request: Message): string => JSON.stringify(request.id as RequestId);
