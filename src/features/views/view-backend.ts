// src/features/views: several servers behind one endpoint.

import { type ResolvedName, ViewNames } from '../../config/servers/view-names.ts';
import type {
  Backend,
  BackendEnd,
  BackendEvents,
  CloseOptions,
  OpenBackend,
  OpenOptions,
  RequestIds,
  Sent,
} from '../../core/backend/backend.ts';
import { CookieJar } from '../../core/backend/cookie-jar.ts';
import { elicitationComplete, UrlElicitations } from '../../core/multiplex/url-elicitations.ts';
import type { Reason, RequestId } from '../../core/protocol/faults.ts';
import type { ForwardedHeaders } from '../../core/protocol/http/forwarded-headers.ts';
import { nextOwnId } from '../../core/protocol/ids/own-ids.ts';
import { findRange, replaceParts, scalarAt } from '../../core/protocol/json.ts';
import { changedMessage, detachedMessage, withId } from '../../core/protocol/message/changed-message.ts';
import { createFaultResponse } from '../../core/protocol/message/gateway-fault.ts';
import { createMessage, emptyResult, type Message, memberValue } from '../../core/protocol/message/message.ts';
import { acceptsQuestions } from '../../core/protocol/methods/askable.ts';
import type { Method } from '../../core/protocol/methods/method.ts';
import { type ListMethod, listMethods, methodOf } from '../../core/protocol/methods/methods.ts';
import { type LogLevel, readLogLevel } from '../../core/protocol/modern/log-levels.ts';
import { contain } from '../../core/util/boundary.ts';
import { Absences, type UserAbsences } from './absences.ts';
import { FanOut } from './fan-out.ts';
import { Member, type MemberListener } from './member.ts';
import type { MemberCall } from './member-calls.ts';
import { MemberMessages, type RoutedMessage } from './member-messages.ts';
import { ResourceRequests } from './resource-requests.ts';
import { UriRoutes } from './uri-routes.ts';
import type { View, ViewParts } from './view.ts';
import { type PageReading, resourceLists } from './view-lists.ts';
import { ViewStart } from './view-start.ts';

/** Creates the opener of a view. */
export function openView(parts: ViewParts): OpenBackend {
  const absences = new Absences();
  return (events, opening) => new ViewBackend(parts, events, opening, absences.of(opening?.principal));
}

/** The notifications after which the URIs of a server may be others. */
const uriChanges: ReadonlySet<string | undefined> = new Set(resourceLists.map(({ list }) => list.changed));

/** While the view is paused, a server that has sent less than this goes on, so that another one's flood does not stop it. */
const quietBytes = 64 * 1024;

/**
 * The servers of a view, as one backend of one session (docs/decisions/0101). Each request goes to the server that its
 * name, URI or task leads to, and lists are merged. A server that is lost or silent affects only its own requests.
 */
class ViewBackend implements Backend, MemberListener, View {
  readonly pid = undefined;
  readonly parts: ViewParts;
  readonly reading: PageReading;
  readonly absences: UserAbsences;
  members: readonly Member[] = [];
  readonly #events: BackendEvents;
  readonly #opening: OpenOptions | undefined;
  readonly #routes: UriRoutes;
  readonly #memberMessages: MemberMessages;
  /** The URL elicitations of the servers, by the position of the server. */
  readonly #elicitations = new UrlElicitations<number>();
  readonly #fanOut = new FanOut(this);
  readonly #resources = new ResourceRequests(this, this.#fanOut);
  #start: ViewStart | undefined;
  /** What a server that starts later has to be told. */
  #isInitialized = false;
  #logLevel: LogLevel | undefined;
  #isPaused = false;
  #isOver = false;

  constructor(parts: ViewParts, events: BackendEvents, opening: OpenOptions | undefined, absences: UserAbsences) {
    this.parts = parts;
    this.absences = absences;
    this.#events = events;
    this.#opening = opening;
    this.#routes = new UriRoutes(parts.members.map(({ name }) => name));
    this.reading = { names: new ViewNames(parts.members), routes: this.#routes, tools: parts.toolRules };
    this.#memberMessages = new MemberMessages(parts.members);
  }

  send(message: Message, headers?: ForwardedHeaders): Sent {
    if (this.#isOver) return 'ended';
    if (message.kind === 'response') this.#sendTo(this.#memberMessages.settle(message), headers);
    else if (message.kind === 'notification') this.#notify(message, headers);
    else if (message.method === 'initialize') this.#open(message);
    else return this.#request(message, headers);
    return 'sent';
  }

  pause(): void {
    this.#isPaused = true;
    const most = Math.max(...this.members.map(({ receivedBytes }) => receivedBytes));
    for (const member of this.members) if (member.receivedBytes >= Math.min(quietBytes, most)) member.pause();
  }

  resume(): void {
    this.#isPaused = false;
    for (const member of this.members) member.resume();
  }

  async close(how?: CloseOptions): Promise<void> {
    const wasOver = this.#isOver;
    this.#isOver = true;
    this.#start?.close();
    await Promise.all(this.members.map((member) => member.close(how)));
    if (!wasOver) this.#events.onEnd({ reason: 'closed', detail: 'The gateway closed the servers of the view.' });
  }

  onReady(member: Member): void {
    const isLate = this.#start?.isOver === true;
    this.parts.onReady(member.name);
    this.#routes.forget(member.index);
    this.#start?.noteReady(member);
    if (!isLate) return;
    for (const message of this.#replayFor(member)) member.send(message, undefined, () => undefined);
    this.announce(member);
  }

  onDown(member: Member, end: BackendEnd, isAtStart: boolean): void {
    // Further starts of a server that stays away are no news.
    if (member.failedStarts < 2) this.parts.onDown(member.name, end, isAtStart);
    this.#start?.noteDown(member, end);
  }

  onCrashLoop(member: Member, pauseMs: number): void {
    this.parts.onCrashLoop(member.name, pauseMs);
  }

  onMessage(
    member: Member,
    message: Message,
    relatedRequests: RequestIds | undefined,
    call: MemberCall | undefined,
  ): void {
    const { index } = member;
    if (message.kind === 'response') {
      this.#elicitations.note(index, message);
      const taskId = call?.asksForTask ? scalarAt(message.text, ['result', 'task', 'taskId']) : undefined;
      if (typeof taskId === 'string') this.#routes.claimTask(taskId, index);
      this.#events.onMessages([message], relatedRequests ?? []);
    } else if (!this.#isOwn(member, message)) {
      if (message.kind === 'request')
        member.send(createFaultResponse('unknown_task', message.id as RequestId), undefined);
    } else {
      if (uriChanges.has(message.method)) this.#routes.forget(index);
      if (message.method === 'notifications/tasks/status' && message.taskId !== undefined)
        this.#routes.learn('taskId', message.taskId, index);
      if (message.kind === 'request') this.#elicitations.note(index, message);
      const related = relatedRequests ?? member.calls.relatedRequests(message);
      this.#report(this.#memberMessages.forClient(message, index), related);
    }
    if (this.#isPaused && member.receivedBytes > quietBytes) member.pause();
  }

  /** False for a message about a call, task, question or resource of another server. The client does not get it (P2). */
  #isOwn(member: Member, message: Message): boolean {
    const { kind, method, text, progressToken, taskId } = message;
    if (taskId !== undefined && !this.#routes.mayName(taskId, member.index)) return false;
    if (kind !== 'notification') return true;
    if (progressToken !== undefined) return member.mayReport(progressToken);
    if (method === elicitationComplete) return (this.#elicitations.ownerOf(message) ?? member.index) === member.index;
    if (method !== 'notifications/resources/updated') return true;
    const uri = scalarAt(text, ['params', 'uri']);
    return typeof uri !== 'string' || this.#routes.mayReport(uri, member.index);
  }

  onNoise(text: Buffer, more?: number): void {
    this.#events.onNoise(text, more);
  }

  onUnanswered(ids: RequestIds, reason: Reason, isFinal?: boolean): void {
    this.#events.onUnanswered(ids, reason, isFinal);
  }

  announce(member: Member): void {
    this.#routes.forget(member.index);
    const changes = listMethods.filter((each) => member.mayHave(each)).map(({ list }) => list.changed);
    for (const method of new Set(changes)) if (method !== undefined) this.#report(createMessage({ method }), []);
  }

  #report(message: Message, relatedRequests: RequestIds | undefined): void {
    if (!this.#isOver) this.#events.onMessages([message], relatedRequests);
  }

  answer(response: Message): void {
    queueMicrotask(() => contain('backend', () => this.#report(response, [])));
  }

  refuse({ id }: Message, reason: Reason): void {
    this.answer(createFaultResponse(reason, id as RequestId));
  }

  /** Starts all servers at once. */
  #open(initialize: Message): void {
    const { members, serverOf, startTimeoutMs, cancelGraceMs } = this.parts;
    const calls = { isGroup: this.#opening?.isGroup === true, asksClients: acceptsQuestions(initialize) };
    // The servers share processes as they do alone: the session holds a process of each (docs/decisions/0101).
    const shared = this.#opening && { ...this.#opening, resume: undefined };
    this.members = members.flatMap(({ name }, index) => {
      const server = serverOf(name);
      const pages = this.#routes.pagesOf(index);
      // The cookies of one server are not for another one.
      const opening = { ...shared, cookies: new CookieJar() };
      const options = { name, index, opening, initialize, calls, startTimeoutMs, cancelGraceMs, pages, listener: this };
      return server === undefined ? [] : [new Member({ ...options, server })];
    });
    this.#start = new ViewStart(this, detachedMessage(initialize));
  }

  noteLearned(): void {
    this.#resources.passKnown();
  }

  fail(end: BackendEnd): void {
    this.#isOver = true;
    this.#events.onEnd(end);
  }

  /** The messages that bring a server that starts now to the state of the session. */
  #replayFor(member: Member): Message[] {
    const level = member.declares('logging') ? this.#logLevel : undefined;
    const setLevel = createMessage({ id: 0, method: 'logging/setLevel', params: { level } });
    const requests = [...(level === undefined ? [] : [setLevel]), ...this.#resources.subscriptionsAt(member.index)];
    const renamed = requests.map((request) => withId(request, nextOwnId()));
    return [...(this.#isInitialized ? [createMessage({ method: 'notifications/initialized' })] : []), ...renamed];
  }

  #sendTo(routed: RoutedMessage | undefined, headers?: ForwardedHeaders): void {
    if (routed !== undefined) this.#member(routed.index)?.send(routed.message, headers);
  }

  #member(index: number | undefined): Member | undefined {
    return this.members.find((member) => member.index === index);
  }

  #notify(message: Message, headers: ForwardedHeaders | undefined): void {
    const { method, cancels } = message;
    if (cancels !== undefined) {
      if (this.#fanOut.cancel(cancels) || this.#resources.cancel(cancels)) return;
      const member = this.members.find(({ calls }) => calls.has(cancels));
      if (member === undefined) for (const each of this.members) each.drop(cancels);
      else member.cancel(message, headers);
    } else if (method === 'notifications/progress') this.#sendTo(this.#memberMessages.progress(message), headers);
    else {
      if (method === 'notifications/initialized') this.#isInitialized = true;
      const isForAll = method === 'notifications/initialized' || method === 'notifications/roots/list_changed';
      if (isForAll || this.members.length === 1) for (const member of this.members) member.send(message, headers);
    }
  }

  #request(message: Message, headers: ForwardedHeaders | undefined): Sent {
    const method = methodOf(message.method);
    if (this.#lacks(method)) return this.#passUnknown(message, headers);
    switch (method.inViews) {
      case 'merge':
        this.#fanOut.list(message, method as ListMethod, headers);
        return 'sent';
      case 'target':
        return this.#passToTarget(method, message, headers);
      case 'all':
        return this.#passToAll(method, message, headers);
      case 'answer':
        this.answer(emptyResult(message));
        return 'sent';
      default:
        return this.#passUnknown(message, headers);
    }
  }

  /** True for a method of an extension that no server declares. */
  #lacks({ capability }: Method): boolean {
    return capability?.includes('/') === true && !this.members.some((member) => member.declares(capability));
  }

  #passToTarget({ target }: Method, message: Message, headers: ForwardedHeaders | undefined): Sent {
    if (target === 'name') return this.#named(message, ['params', 'name'], headers);
    if (target === 'uri') return this.#resources.send(message, ['params', 'uri'], headers);
    if (target === 'ref') return this.#complete(message, headers);
    const index = message.taskId === undefined ? undefined : this.#routes.findTask(message.taskId);
    if (index !== undefined) return this.pass(index, message, headers);
    this.refuse(message, 'unknown_task');
    return 'sent';
  }

  #passToAll({ name, capability = '' }: Method, message: Message, headers: ForwardedHeaders | undefined): Sent {
    if (name === 'logging/setLevel')
      this.#logLevel = readLogLevel(scalarAt(message.text, ['params', 'level'])) ?? this.#logLevel;
    const having = this.members.filter((member) => member.isReady && member.declares(capability));
    this.#fanOut.broadcast(message, having, headers);
    return 'sent';
  }

  /** Passes a request that no rule leads to a server: only the server of a view with one can be meant. */
  #passUnknown(message: Message, headers: ForwardedHeaders | undefined): Sent {
    if (this.members.length === 1) return this.pass(this.members[0]?.index, message, headers);
    this.refuse(message, 'method_of_view');
    return 'sent';
  }

  /** Passes a request to the server that a name leads to, under the server's own name. */
  #named(message: Message, path: readonly string[], headers: ForwardedHeaders | undefined): Sent {
    const name = path.length === 2 ? memberValue(message, 'params', 'name') : scalarAt(message.text, path);
    const found: ResolvedName | undefined = typeof name === 'string' ? this.reading.names.resolve(name) : undefined;
    const range = found && findRange(message.text, path);
    if (found === undefined || typeof range !== 'object') {
      this.refuse(message, methodOf(message.method).names === 'tool' ? 'unknown_tool' : 'unknown_prompt');
      return 'sent';
    }
    if (found.own === name) return this.pass(found.index, message, headers);
    const text = replaceParts(message.text, [{ ...range, by: JSON.stringify(found.own) }]);
    return this.pass(found.index, changedMessage(message, text, {}), headers);
  }

  #complete(message: Message, headers: ForwardedHeaders | undefined): Sent {
    const type = scalarAt(message.text, ['params', 'ref', 'type']);
    if (type === 'ref/resource') return this.#resources.send(message, ['params', 'ref', 'uri'], headers);
    return this.#named(message, ['params', 'ref', 'name'], headers);
  }

  pass(index: number | undefined, message: Message, headers: ForwardedHeaders | undefined): Sent {
    const sent = this.#member(index)?.send(message, headers) ?? 'down';
    if (sent !== 'down') return sent;
    this.refuse(message, 'view_unavailable');
    return 'sent';
  }

  passLater(index: number, message: Message, headers: ForwardedHeaders | undefined): void {
    if (this.pass(index, message, headers) === 'full')
      this.#events.onUnanswered([message.id as RequestId], 'server_busy', true);
  }
}
