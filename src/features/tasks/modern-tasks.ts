import type { Answer } from '../../core/call/answer.ts';
import type { CallTasks, TaskAsker } from '../../core/call/call-tasks.ts';
import type { CredentialMarks } from '../../core/keys/credential-marks.ts';
import type { RequestId } from '../../core/protocol/faults.ts';
import type { ByteRange } from '../../core/protocol/json/byte-range.ts';
import { readScalar } from '../../core/protocol/json/scalar.ts';
import { scanList } from '../../core/protocol/json/scan.ts';
import { findRange, replaceParts, valueAt } from '../../core/protocol/json/splice.ts';
import { maxSubscriptions } from '../../core/protocol/kept-uris.ts';
import { type Message, memberRange, memberValue, readGatewayMessage } from '../../core/protocol/message/message.ts';
import { readClientFeatures } from '../../core/protocol/methods/askable.ts';
import { clientCapabilitiesKey } from '../../core/protocol/modern/envelope.ts';
import { subscriptionIdKey } from '../../core/protocol/modern/renumber.ts';
import { readMembers } from '../../core/protocol/modern/retry.ts';
import type { Era } from '../../core/protocol/revisions.ts';
import type { Reply } from '../../core/reply/reply.ts';
import { StoreUnavailable } from '../../core/store/store-unavailable.ts';
import { detach } from '../../core/util/boundary.ts';
import { type GatewayTasks, isGatewayTask, type TaskClient } from './gateway-tasks.ts';
import { type TaskRecord, taskMembers, taskResponse, tasksExtension } from './task-record.ts';

export interface ModernTasksOptions {
  readonly tasks: GatewayTasks;
  /** A call becomes a task after this many milliseconds. */
  readonly afterMs: number;
  readonly marks: CredentialMarks;
  /** The name of the server. */
  readonly server: string;
}

/** The methods of tasks that a client of the modern era may use (SEP-2663). */
const taskMethods: ReadonlySet<string | undefined> = new Set(['tasks/get', 'tasks/update', 'tasks/cancel']);

const requiredCapabilities = { extensions: { [tasksExtension]: {} } };

/**
 * The tasks that the gateway makes of calls to one server, for its clients of the modern era. A client that declares
 * the extension, and waits for long, gets a task in place of the answer, and asks for the result later, at any instance.
 */
export class ModernTasks implements CallTasks {
  readonly #options: ModernTasksOptions;
  /** The server has tasks of its own: it decides which calls become one. */
  #hasOwn = false;

  constructor(options: ModernTasksOptions) {
    this.#options = options;
  }

  /** True if the gateway itself answers this request: it is about a task of the gateway, or the server has no tasks. */
  serves(request: Message, era: Era): boolean {
    if (!taskMethods.has(request.method)) return false;
    return era === 'legacy' || isGatewayTask(memberValue(request, 'params', 'taskId'));
  }

  /** Answers a request about a task. */
  async serve(request: Message, answer: Answer, origin: TaskAsker): Promise<void> {
    if (!declaresTasks(request)) return answer.fault('missing_capability', { requiredCapabilities });
    const id = memberValue(request, 'params', 'taskId');
    try {
      const asker = await this.#askerOf(origin);
      const respond = await this.#answerTo(request, id, asker);
      if (answer.isOver) return;
      if (respond === undefined) answer.fault('unknown_task');
      else answer.response(readGatewayMessage(respond));
    } catch (cause) {
      if (!(cause instanceof StoreUnavailable)) throw cause;
      if (!answer.isOver) answer.fault('store_unavailable');
    }
  }

  /** The text of the response; undefined if there is no such task. */
  async #answerTo(request: Message, id: unknown, asker: TaskClient): Promise<Buffer | undefined> {
    const { tasks } = this.#options;
    if (!isGatewayTask(id)) return undefined;
    const idText = idTextOf(request);
    if (request.method === 'tasks/get') {
      const record = await tasks.find(id, asker);
      return record && taskResponse(idText, 'complete', taskMembers(id, record));
    }
    if (request.method === 'tasks/cancel')
      return (await tasks.cancel(id, asker)) ? taskResponse(idText, 'complete') : undefined;
    const range = memberRange(request, 'params', 'inputResponses');
    const answers = range === undefined ? new Map() : readMembers(request.text.subarray(range.start, range.end));
    return (await tasks.answer(id, asker, answers)) ? taskResponse(idText, 'complete') : undefined;
  }

  /** True if this subscription names tasks of the gateway. */
  mayTell(request: Message): boolean {
    return request.method === 'subscriptions/listen' && taskIdsIn(request).some(({ id }) => isGatewayTask(id));
  }

  /**
   * Adds news of the gateway's tasks to a subscription (SEP-2663, "Task Status Notifications").
   * @param send sends the subscription to the server, without these tasks
   */
  async listen(
    request: Message,
    answer: Answer,
    reply: Reply,
    origin: TaskAsker,
    send: (request: Message) => void,
  ): Promise<void> {
    if (!declaresTasks(request)) return answer.fault('missing_capability', { requiredCapabilities });
    const { tasks } = this.#options;
    const listed = taskIdsIn(request);
    const asker = await this.#askerOf(origin);
    const own = listed
      .map(({ id }) => id)
      .filter(isGatewayTask)
      .slice(0, tasks.roomToWatch(asker));
    const found = await Promise.all(own.map((id) => tasks.find(id, asker)));
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
          const watched = tasks.watch(id, asker, tell);
          detach(
            'request',
            watched.then((stop) => (isGone() ? stop() : reply.onGone(stop))),
          );
        }
        return withTaskIds(observed, known);
      },
    };
    send(withoutTasks(request, listed));
  }

  /** True if this call becomes a task when its answer does not come in time. */
  mayMake(call: Message): boolean {
    return call.method === 'tools/call' && !this.#hasOwn && declaresTasks(call);
  }

  /**
   * Sends a call that may become a task.
   * @param send sends a request to the server, whose answer is that of the call
   */
  async call(call: Message, answer: Answer, origin: TaskAsker, send: (request: Message) => void): Promise<void> {
    const { afterMs } = this.#options;
    const begin = (): Promise<void> => this.#begin(call, answer, origin, send);
    if (afterMs > 0) {
      setTimeout(() => answer.isOver || detach('request', begin()), afterMs).unref();
      return send(call);
    }
    await begin();
    if (!answer.isOver) send(call);
  }

  async #begin(call: Message, answer: Answer, origin: TaskAsker, send: (request: Message) => void): Promise<void> {
    const { tasks } = this.#options;
    const capabilities = capabilitiesOf(call);
    const canBeAsked = capabilities !== undefined && readClientFeatures(capabilities).size > 0;
    const taskCall = {
      request: canBeAsked ? call : undefined,
      resend: send,
      cancel: () => answer.cancel(),
    };
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

  async #askerOf({ principal, forwarded }: TaskAsker): Promise<TaskClient> {
    const { server, marks } = this.#options;
    const credentials = forwarded === undefined ? '' : await marks.markOf(server, forwarded);
    return { principal, credentials, server };
  }
}

const capabilitiesOf = (request: Message): Buffer | undefined => {
  const range = memberRange(request, 'meta', clientCapabilitiesKey);
  return range && request.text.subarray(range.start, range.end);
};

/** True if the client accepts a task in place of an answer, by this request. */
function declaresTasks(request: Message): boolean {
  const capabilities = capabilitiesOf(request);
  // Most clients do not, and need no second look.
  if (capabilities?.includes(tasksExtension) !== true) return false;
  return valueAt(capabilities, ['extensions', tasksExtension]) !== undefined;
}

const acknowledged = 'notifications/subscriptions/acknowledged';

/** The tasks that a subscription names, and where its text does so. */
function taskIdsIn(request: Message): readonly { readonly id: unknown; readonly range: ByteRange }[] {
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
function withoutTasks(request: Message, listed: ReturnType<typeof taskIdsIn>): Message {
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
