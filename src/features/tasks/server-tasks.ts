import { randomBytes } from 'node:crypto';
import type { TasksFeature } from '../../app/features/eras.ts';
import type { BackendEnd, OpenOptions, RequestIds, Resume, Sent } from '../../core/backend/backend.ts';
import { Interceptor, type Outgoing } from '../../core/backend/link/link.ts';
import type { Reason, RequestId } from '../../core/protocol/faults.ts';
import type { ForwardedHeaders } from '../../core/protocol/http/forwarded-headers.ts';
import { nextOwnId } from '../../core/protocol/ids/own-ids.ts';
import { errorCodeIn, findRange, scalarAt, scanObject, valueAt } from '../../core/protocol/json.ts';
import { withId } from '../../core/protocol/message/changed-message.ts';
import { formatObject, putMembers, withoutMember } from '../../core/protocol/message/edit-members.ts';
import { createFaultResponse } from '../../core/protocol/message/gateway-fault.ts';
import {
  createMessage,
  type Message,
  memberRange,
  memberValue,
  readGatewayMessage,
} from '../../core/protocol/message/message.ts';
import { tasksExtension } from '../../core/protocol/methods/extensions.ts';
import { methodNotFound } from '../../core/protocol/revisions.ts';
import { contain } from '../../core/util/boundary.ts';
import { BoundedMap } from '../../core/util/bounded-map.ts';
import { SparseMap } from '../../core/util/sparse-map.ts';
import { declaresTasks, declaringTasks } from './task-capabilities.ts';
import { formatTaskResumeState, parseTaskResumeState, type SavedCall } from './task-record.ts';

/** Runs the calls that a server serves only as tasks: its user calls a tool, and gets the result. */
export function runServerTasks(): ReturnType<TasksFeature['runServerTasks']> {
  const required = new BoundedMap<string, true>(maxTools);
  return {
    interceptor: (opening) => new ServerTasks(opening, required),
    learn({ name, text }, kind) {
      if (kind !== 'tool' || name.length > maxNameLength) return;
      if (scalarAt(text, ['execution', 'taskSupport']) === 'required') required.set(name, true);
      else required.delete(name);
    },
  };
}

/** The calls that are kept until their server has answered (P8), and their bytes. One beyond is not called as a task. */
const maxKept = 1_000;
const maxKeptBytes = 4 * 1024 * 1024;

/** The calls that wait for input of their clients (P8). The oldest one beyond gets no answers any more. */
const maxWaiting = 1_000;

/** The requests of each kind whose answers are awaited (P8). A server need not answer any. */
const maxAwaited = 1_000;

/** The tools that are known to run only as tasks (P8). */
const maxTools = 1_000;
const maxNameLength = 256;

/** How often a server of the modern era is asked about a task, in milliseconds, whatever it says. */
const usualPollMs = 1_000;
const shortestPollMs = 100;
const longestPollMs = 15_000;

/** How often in a row the question about a task may get no answer. */
const maxLostPolls = 5;

/** The error of a modern server for a request whose client does not declare what the request needs. */
const missingCapability = -32021;

/** The members of a result or message that name its task (2025-11-25, basic/utilities/tasks). */
const relatedTask = 'io.modelcontextprotocol/related-task';

/** The state of a round begins with this, if it stands for a task of the server. */
const statePrefix = 'gangway-task-';

/** A call that runs as a task at its server. */
interface TaskCall {
  /** The id under which the user waits for the answer. */
  id: RequestId;
  /** The request as the server got it; undefined if an earlier owner of the session has sent it. */
  readonly request: Message | undefined;
  readonly progressToken: RequestId | undefined;
  readonly headers: ForwardedHeaders | undefined;
  /** The id of the request to the server that is open. */
  ownId: RequestId | undefined;
  taskId: string | undefined;
  pollMs: number;
  lostPolls: number;
  timer: NodeJS.Timeout | undefined;
  /** The keys of the questions that are answered. */
  readonly answered: Set<string>;
  /** What the user knows of the state. */
  told: unknown;
  reports: number;
}

/** A call that may be refused because it does not ask for a task. */
interface PlainCall {
  readonly request: Message;
  readonly headers: ForwardedHeaders | undefined;
}

/**
 * Some tools run only as tasks: `execution.taskSupport: required` in 2025-11-25, and in the modern era an error that names
 * the missing extension. Not every client knows tasks, and none knows those of the other era. So a call that its server
 * refuses for this reason is sent again as a task. The user of the backend sees one long call: with progress, questions
 * and a result. What asks for a task itself passes unchanged.
 */
class ServerTasks extends Interceptor {
  /** The requests whose answers say what the server can do. */
  readonly #openings = new BoundedMap<RequestId, true>(maxAwaited);
  /** Whose tasks the server has; undefined for none. */
  #era: 'legacy' | 'modern' | undefined;
  /** The tools that say that they run only as tasks (2025-11-25). */
  readonly #required: BoundedMap<string, true>;
  readonly #plain = new SparseMap<RequestId, PlainCall>();
  #plainBytes = 0;
  readonly #byCall = new SparseMap<RequestId, TaskCall>();
  readonly #byOwnId = new SparseMap<RequestId, TaskCall>();
  readonly #byTask = new SparseMap<string, TaskCall>();
  /** The calls that wait for input, by the state that their clients send back. */
  readonly #waiting = new BoundedMap<string, TaskCall>(maxWaiting);
  /** Requests whose answers nobody needs. */
  readonly #ignored = new BoundedMap<RequestId, true>(maxAwaited);
  readonly #newestHeaders: OpenOptions['headers'];
  /** The newest resume state of the backend. */
  #state: string | undefined;
  /** The texts that the user got before the owner of the session changed. They may come again. */
  #delivered: Set<string> | undefined;

  constructor(opening: OpenOptions | undefined, required: BoundedMap<string, true>) {
    super();
    this.#required = required;
    this.#newestHeaders = opening?.headers;
  }

  override onSend(outgoing: Outgoing): Outgoing | Sent {
    const { message } = outgoing;
    const { kind, method, id, cancels } = message;
    if (kind === 'request') {
      if (method === 'initialize' || method === 'server/discover') this.#openings.set(id as RequestId, true);
      else if (method === 'tools/call' && this.#era !== undefined) return this.#sendCall(outgoing);
    } else if (cancels !== undefined && this.#byCall.has(cancels)) {
      this.#cancel(this.#byCall.get(cancels) as TaskCall);
      return 'sent';
    }
    return outgoing;
  }

  override onSent({ id }: Message, result: Sent): void {
    if (result !== 'sent' && id != null) this.#forgetPlain(id);
  }

  override onMessages(messages: readonly Message[], related: RequestIds | undefined): readonly Message[] {
    const awaited = this.#openings.size + this.#plain.size + this.#byOwnId.size;
    if (awaited + this.#byTask.size + this.#ignored.size === 0) return messages;
    // What belongs to a request about a task belongs to the call of its user.
    const users = related?.map((id) => this.#byOwnId.get(id)?.id ?? id);
    const isOfTask = related?.some((id) => this.#byOwnId.has(id)) === true;
    const received = messages.map((message) => this.#receive(message)).filter((message) => message !== undefined);
    const passed = isOfTask ? received.filter(({ text }) => !this.#wasDelivered(text)) : received;
    if (!isOfTask || passed.length === 0) return passed;
    this.passMessages(passed, users);
    return nothing;
  }

  override onUnanswered(ids: RequestIds, reason: Reason, isFinal: boolean | undefined): void {
    const users: RequestId[] = [];
    for (const id of ids) {
      this.#forgetPlain(id);
      const call = this.#byOwnId.get(id);
      if (call === undefined) {
        if (!this.#ignored.delete(id)) users.push(id);
      } else if (this.#pollsAgain(call)) this.#pollLater(call);
      else users.push(this.#end(call));
    }
    if (users.length > 0) this.passUnanswered(users, reason, isFinal);
  }

  override onState(state: string): void {
    this.#state = state;
    this.#tellState();
  }

  /** Goes on with the calls whose tasks an earlier owner of the session has begun. The server still has them. */
  override onResume(resume: Resume): Resume {
    const saved = parseTaskResumeState(resume.state);
    if (saved === undefined) return resume;
    const { state, calls } = saved;
    this.#era = 'legacy';
    this.#state = state;
    const pending = new Map(resume.pending.map((id) => [id, id]));
    for (const { id, taskId, progressToken, reports, ownId = nextOwnId() } of calls) {
      if (!pending.has(id)) continue;
      const known = { id, ownId, taskId, progressToken, reports };
      const call: TaskCall = { ...emptyCall(), ...known, request: undefined, headers: undefined };
      this.#byCall.set(id, call);
      this.#byTask.set(taskId, call);
      this.#byOwnId.set(ownId, call);
      // If nothing can be read on, the backend says so, and the server is asked again.
      pending.set(id, ownId);
    }
    if (this.#byCall.size > 0) this.#delivered = new Set(resume.delivered.map(({ text }) => text.toString()));
    return { ...resume, state, pending: [...pending.values()] };
  }

  override onOver(): void {
    for (const call of this.#byCall.values()) clearTimeout(call.timer);
  }

  override onEnd(end: BackendEnd): void {
    for (const call of this.#byCall.values()) clearTimeout(call.timer);
    this.passEnd(end);
  }

  /** The next owner of the session needs to know the tasks, and that there may be more. */
  #tellState(): void {
    if (this.#state === undefined) return;
    if (this.#era !== 'legacy') return this.passState(this.#state);
    const calls: SavedCall[] = [];
    for (const { id, ownId, taskId, progressToken, reports } of this.#byCall.values())
      if (taskId !== undefined) calls.push({ id, ownId, taskId, progressToken, reports });
    this.passState(formatTaskResumeState({ state: this.#state, calls }));
  }

  #wasDelivered(text: Buffer): boolean {
    return this.#delivered?.delete(text.toString()) === true;
  }

  /** Keeps a call until it is clear that its server takes it. */
  #sendCall(outgoing: Outgoing): Outgoing | Sent {
    const { message: request, headers } = outgoing;
    const state = memberValue(request, 'params', 'requestState');
    if (typeof state === 'string' && state.startsWith(statePrefix)) {
      const waiting = this.#waiting.get(state);
      return waiting === undefined ? this.#refuseRound(request) : this.#answer(waiting, state, request);
    }
    const name = memberValue(request, 'params', 'name');
    const isRequired =
      this.#era === 'legacy' && typeof name === 'string' && this.#required.has(name) && !request.asksForTask;
    if (isRequired && this.#start(request.id as RequestId, { request, headers })) return 'sent';
    const { length } = request.text;
    const mayBeKept = this.#plain.size < maxKept && this.#plainBytes + length <= maxKeptBytes;
    if (!mayBeKept || request.asksForTask || declaresTasks(request)) return outgoing;
    this.#plain.set(request.id as RequestId, { request, headers });
    this.#plainBytes += length;
    return outgoing;
  }

  /** The task that has asked is not here: another instance, or none, has its call. To begin again would run it twice. */
  #refuseRound({ id }: Message): Sent {
    const fault = createFaultResponse('outcome_unknown', id as RequestId, undefined, 'modern');
    queueMicrotask(() => contain('backend', () => this.passMessages([fault])));
    return 'sent';
  }

  #forgetPlain(id: RequestId): PlainCall | undefined {
    const plain = this.#plain.get(id);
    if (plain === undefined) return undefined;
    this.#plain.delete(id);
    this.#plainBytes -= plain.request.text.length;
    return plain;
  }

  /** Returns what the user gets of a message; undefined for nothing. */
  #receive(message: Message): Message | undefined {
    const { kind, id, taskId } = message;
    if (kind === 'response' && id != null) {
      if (this.#openings.delete(id)) this.#learn(message.text);
      if (this.#ignored.delete(id)) return undefined;
      const call = this.#byOwnId.get(id);
      if (call !== undefined) return this.#take(call, message);
      const plain = this.#forgetPlain(id);
      if (plain === undefined || !this.#isRefused(message)) return message;
      return this.#start(id, plain) ? undefined : message;
    }
    const call = taskId === undefined ? undefined : this.#byTask.get(taskId);
    if (call === undefined) return message;
    if (message.method === 'notifications/tasks/status') return this.#progressOf(call, message.text, ['params']);
    // The user knows of no task.
    return readGatewayMessage(withoutMember(message.text, ['params', '_meta', relatedTask]));
  }

  /** Learns from the answer to the first request whether the server has tasks. */
  #learn(opening: Buffer): void {
    const has = (...path: string[]) => typeof findRange(opening, ['result', 'capabilities', ...path]) === 'object';
    if (has('tasks', 'requests', 'tools', 'call')) this.#era = 'legacy';
    else if (has('extensions', tasksExtension)) this.#era = 'modern';
  }

  /** True for the error of a server that serves a call only as a task. */
  #isRefused({ isError, text }: Message): boolean {
    // The official SDK says the same in a result of the tool.
    if (!isError) return this.#era === 'legacy' && text.length <= maxRefusalBytes && text.includes(refusalOfSdk);
    const code = errorCodeIn(text);
    if (this.#era === 'legacy') return code === methodNotFound;
    const needed = ['error', 'data', 'requiredCapabilities', 'extensions', tasksExtension];
    return code === missingCapability && typeof findRange(text, needed) === 'object';
  }

  /** Sends a refused call as a task. False if the server takes no more. */
  #start(id: RequestId, { request, headers }: PlainCall): boolean {
    const asking = this.#era === 'legacy' ? putMembers(request, 'params', [['task', '{}']]) : declaringTasks(request);
    const ownId = nextOwnId();
    const start = withId(readGatewayMessage(asking), ownId);
    const { progressToken } = start;
    const call: TaskCall = { ...emptyCall(), id, request: start, progressToken, headers, ownId, taskId: undefined };
    this.#byCall.set(id, call);
    this.#byOwnId.set(ownId, call);
    if (this.passSend(start, headers) === 'sent') return true;
    this.#end(call);
    return false;
  }

  /** Takes the answer to a request about a call. Returns what the user gets. */
  #take(call: TaskCall, response: Message): Message | undefined {
    this.#byOwnId.delete(call.ownId as RequestId);
    call.ownId = undefined;
    if (response.isError) return this.#answered(call, response);
    if (this.#era === 'legacy') return this.#takeLegacy(call, response);
    call.lostPolls = 0;
    const resultType = scalarAt(response.text, ['result', 'resultType']);
    if (call.taskId === undefined && resultType !== 'task') return this.#answered(call, response);
    return this.#takeState(call, response.text);
  }

  #takeLegacy(call: TaskCall, response: Message): Message | undefined {
    const taskId = scalarAt(response.text, ['result', 'task', 'taskId']);
    if (call.taskId !== undefined || typeof taskId !== 'string') {
      const text = withoutMember(response.text, ['result', '_meta', relatedTask]);
      return this.#answered(call, readGatewayMessage(text));
    }
    this.#noteTask(call, taskId);
    return this.#askForResult(call);
  }

  #askForResult(call: TaskCall): Message | undefined {
    const { taskId } = call;
    const refusal = this.#ask(call, createMessage({ id: 0, method: 'tasks/result', params: { taskId } }));
    if (refusal === undefined) this.#tellState();
    return refusal;
  }

  #noteTask(call: TaskCall, taskId: string): void {
    call.taskId = taskId;
    this.#byTask.set(taskId, call);
  }

  /** Takes the state of a task of the modern era. */
  #takeState(call: TaskCall, text: Buffer): Message | undefined {
    const taskId = scalarAt(text, ['result', 'taskId']);
    if (call.taskId === undefined && typeof taskId === 'string') this.#noteTask(call, taskId);
    const pollMs = scalarAt(text, ['result', 'pollIntervalMs']);
    if (typeof pollMs === 'number') call.pollMs = Math.min(longestPollMs, Math.max(shortestPollMs, pollMs));
    const status = scalarAt(text, ['result', 'status']);
    const [result, error] = [valueAt(text, ['result', 'result']), valueAt(text, ['result', 'error'])];
    if (status === 'completed' && result !== undefined)
      return this.#answered(call, responseWith('result', completed(result)));
    if (status === 'failed' && error !== undefined) return this.#answered(call, responseWith('error', error));
    if (status === 'input_required') {
      const questions = openQuestions(text, call.answered);
      if (questions !== undefined) return this.#askForInput(call, questions);
    } else if (status !== 'working') {
      return this.#answered(call, createFaultResponse(status === 'cancelled' ? 'cancelled' : 'bad_response', 0));
    }
    this.#pollLater(call);
    return this.#progressOf(call, text, ['result']);
  }

  /** Ends the request with the questions of the task. Its client sends it again with the answers. */
  #askForInput(call: TaskCall, questions: string): Message {
    const state = statePrefix + randomBytes(18).toString('base64url');
    this.#waiting.set(state, call);
    // While it waits, nothing else is kept of it.
    this.#byCall.delete(call.id);
    this.#byTask.delete(call.taskId as string);
    const result = `{"resultType":"input_required","inputRequests":${questions},"requestState":"${state}"}`;
    return withId(responseWith('result', Buffer.from(result)), call.id);
  }

  /** Passes the answers of a client to the task that has asked. */
  #answer(call: TaskCall, state: string, request: Message): Sent {
    this.#waiting.delete(state);
    const range = memberRange(request, 'params', 'inputResponses');
    const answers = range === undefined ? Buffer.from('{}') : request.text.subarray(range.start, range.end);
    const members = scanObject(answers);
    if (typeof members === 'object') for (const key of members.keys) call.answered.add(key);
    call.id = request.id as RequestId;
    this.#byCall.set(call.id, call);
    this.#byTask.set(call.taskId as string, call);
    const params = Buffer.from(`{"taskId":${JSON.stringify(call.taskId)},"inputResponses":${answers}}`);
    this.#send(call, 'tasks/update', params, (ownId) => this.#ignored.set(ownId, true));
    this.#pollLater(call);
    return 'sent';
  }

  /** A message of progress for the user of a call, if the state of its task says something new. */
  #progressOf(call: TaskCall, text: Buffer, path: readonly string[]): Message | undefined {
    const { progressToken } = call;
    const message = scalarAt(text, [...path, 'statusMessage']);
    if (progressToken === undefined || typeof message !== 'string' || message === call.told) return undefined;
    call.told = message;
    call.reports += 1;
    // A server that reports progress itself counts from one.
    const progress = call.reports * smallestProgress;
    return createMessage({ method: 'notifications/progress', params: { progressToken, progress, message } });
  }

  #pollsAgain(call: TaskCall): boolean {
    call.lostPolls += 1;
    return call.taskId !== undefined && call.lostPolls <= maxLostPolls;
  }

  #pollLater(call: TaskCall): void {
    if (call.ownId !== undefined) this.#byOwnId.delete(call.ownId);
    call.ownId = undefined;
    clearTimeout(call.timer);
    call.timer = setTimeout(() => contain('backend', () => this.#poll(call)), call.pollMs).unref();
  }

  #poll(call: TaskCall): void {
    if (this.#byCall.get(call.id) !== call) return;
    if (this.#era === 'legacy') {
      const refusal = this.#askForResult(call);
      if (refusal !== undefined) this.passMessages([refusal]);
      return;
    }
    const params = Buffer.from(`{"taskId":${JSON.stringify(call.taskId)}}`);
    const sent = this.#send(call, 'tasks/get', params, (ownId) => {
      call.ownId = ownId;
      this.#byOwnId.set(ownId, call);
    });
    if (sent === 'full') this.#pollLater(call);
  }

  /** The headers of the client's request, or its newest ones if an earlier owner of the session has got that. */
  #headersOf({ headers, request }: TaskCall): ForwardedHeaders | undefined {
    return request === undefined ? this.#newestHeaders?.() : headers;
  }

  /** Sends a request of the modern era about a task, with what the client of the call declares. */
  #send(call: TaskCall, method: string, params: Buffer, note: (ownId: RequestId) => unknown): Sent {
    const ownId = nextOwnId();
    const { request } = call;
    const range = request && memberRange(request, 'params', '_meta');
    const meta = range && request ? request.text.subarray(range.start, range.end) : Buffer.from('{}');
    const text = `{"jsonrpc":"2.0","id":${ownId},"method":"${method}","params":${params}}`;
    const message = readGatewayMessage(Buffer.from(text));
    const enveloped = putMembers(message, 'params', [['_meta', withoutMember(meta, ['progressToken']).toString()]]);
    note(ownId);
    return this.passSend(readGatewayMessage(enveloped), call.headers);
  }

  /** Sends a request of 2025-11-25 about a task. Returns the response if the server takes no more. */
  #ask(call: TaskCall, request: Message): Message | undefined {
    const ownId = nextOwnId();
    call.ownId = ownId;
    this.#byOwnId.set(ownId, call);
    if (this.passSend(withId(request, ownId), this.#headersOf(call)) === 'sent') return undefined;
    return this.#answered(call, createFaultResponse('outcome_unknown', 0));
  }

  #cancel(call: TaskCall): void {
    const { taskId, ownId } = call;
    this.#end(call);
    if (ownId !== undefined) this.#ignored.set(ownId, true);
    if (taskId === undefined) return;
    const note = (id: RequestId): unknown => this.#ignored.set(id, true);
    if (this.#era === 'modern') this.#send(call, 'tasks/cancel', Buffer.from(formatId(taskId)), note);
    else {
      const id = nextOwnId();
      note(id);
      this.passSend(createMessage({ id, method: 'tasks/cancel', params: { taskId } }), this.#headersOf(call));
    }
  }

  #answered(call: TaskCall, response: Message): Message {
    return withId(response, this.#end(call));
  }

  /** Forgets a call. Returns the id under which its user waits. */
  #end(call: TaskCall): RequestId {
    clearTimeout(call.timer);
    this.#byCall.delete(call.id);
    if (call.ownId !== undefined) this.#byOwnId.delete(call.ownId);
    if (call.taskId !== undefined) this.#byTask.delete(call.taskId);
    return call.id;
  }
}

const emptyCall = () => ({
  pollMs: usualPollMs,
  lostPolls: 0,
  timer: undefined,
  answered: new Set<string>(),
  told: undefined,
  reports: 0,
});

/** What a server of version 1 of the official TypeScript SDK writes when a call does not ask for a task. */
const refusalOfSdk = "requires task augmentation (taskSupport: 'required')";
const maxRefusalBytes = 4_096;

const nothing: readonly Message[] = [];
const smallestProgress = 1e-6;

const formatId = (taskId: string): string => formatObject([['taskId', JSON.stringify(taskId)]]);

/** The questions of a task that nobody has answered, as JSON text; undefined if there is none. */
function openQuestions(text: Buffer, answered: ReadonlySet<string>): string | undefined {
  const questions = valueAt(text, ['result', 'inputRequests']);
  const members = questions && scanObject(questions);
  if (questions === undefined || typeof members !== 'object') return undefined;
  const { keys, starts, ends } = members;
  const open = keys
    .map((key, index) => [key, questions.toString('utf8', starts[index], ends[index])] as const)
    .filter(([key]) => !answered.has(key));
  return open.length === 0 ? undefined : formatObject(open);
}

/** The result of a task as that of its call, which says that it is complete. */
function completed(result: Buffer): Buffer {
  if (findRange(result, ['resultType']) !== 'absent') return result;
  const rest = result.subarray(result.indexOf('{') + 1);
  const isEmpty = rest.length <= 64 && rest.toString('latin1').trim() === '}';
  return Buffer.concat([Buffer.from(`{"resultType":"complete"${isEmpty ? '' : ','}`), rest]);
}

/** A response with this result or error. */
const responseWith = (member: 'result' | 'error', value: Buffer): Message =>
  readGatewayMessage(Buffer.concat([Buffer.from(`{"jsonrpc":"2.0","id":0,"${member}":`), value, Buffer.from('}')]));
