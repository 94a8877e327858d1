import type { Answer } from '../../call/answer.ts';
import type { CredentialMarks } from '../../era/keys/credential-marks.ts';
import type { ClientOrigin } from '../../modern/modern-server.ts';
import type { RequestId } from '../../protocol/faults.ts';
import { findRange, replaceParts, valueAt } from '../../protocol/json/splice.ts';
import { type Message, memberRange, memberValue, readGatewayMessage } from '../../protocol/message/message.ts';
import { clientCapabilitiesKey } from '../../protocol/modern/envelope.ts';
import { readMembers } from '../../protocol/modern/retry.ts';
import type { Era } from '../../protocol/revisions.ts';
import { readClientFeatures } from '../../protocol/translate/modern-on-legacy/askable.ts';
import { StoreUnavailable } from '../../store/store-unavailable.ts';
import { type GatewayTasks, isGatewayTask, type TaskClient } from '../../tasks/gateway-tasks.ts';
import { taskMembers, taskResponse, tasksExtension } from '../../tasks/task-record.ts';
import { detach } from '../../util/boundary.ts';

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
export class ModernTasks {
  readonly #options: ModernTasksOptions;
  /** The server has tasks of its own: it decides which calls become one. */
  #hasOwn = false;

  constructor(options: ModernTasksOptions) {
    this.#options = options;
  }

  /** True if the gateway itself answers this request: it is about a task of the gateway, or the server has no tasks. */
  serves({ method }: Message, taskId: unknown, era: Era): boolean {
    return taskMethods.has(method) && (era === 'legacy' || isGatewayTask(taskId));
  }

  /** Answers a request about a task. */
  async serve(request: Message, answer: Answer, origin: ClientOrigin): Promise<void> {
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

  /** True if this call becomes a task when its answer does not come in time. */
  mayMake(call: Message): boolean {
    return call.method === 'tools/call' && !this.#hasOwn && declaresTasks(call);
  }

  /**
   * Sends a call that may become a task.
   * @param send sends a request to the server, whose answer is that of the call
   */
  async call(call: Message, answer: Answer, origin: ClientOrigin, send: (request: Message) => void): Promise<void> {
    const { afterMs } = this.#options;
    const begin = (): Promise<void> => this.#begin(call, answer, origin, send);
    if (afterMs > 0) {
      setTimeout(() => answer.isOver || detach('request', begin()), afterMs).unref();
      return send(call);
    }
    await begin();
    if (!answer.isOver) send(call);
  }

  async #begin(call: Message, answer: Answer, origin: ClientOrigin, send: (request: Message) => void): Promise<void> {
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
    const isEmpty = /^\{\s*\}$/.test(text.toString('latin1', object.start, Math.min(object.end, object.start + 64)));
    const at = object.start + 1;
    return readGatewayMessage(replaceParts(text, [{ start: at, end: at, by: isEmpty ? inside : `${inside},` }]));
  }

  async #askerOf({ principal, forwarded }: ClientOrigin): Promise<TaskClient> {
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

const idTextOf = (request: Message): string => JSON.stringify(request.id as RequestId);
