// src/era/modern-on-legacy: serves modern clients, and legacy clients without a session, in sessions of the gateway's own.
import { randomBytes, randomInt } from 'node:crypto';
import type { Answer } from '../../call/answer.ts';
import type { Reason, RequestId } from '../../protocol/faults.ts';
import { type ForwardedHeaders, noHeaders } from '../../protocol/http/forwarded-headers.ts';
import { maxForeignId } from '../../protocol/ids/own-ids.ts';
import { modernRevisions } from '../../protocol/known-revisions.ts';
import { createMessage, type Message, memberRange, withId } from '../../protocol/message/message.ts';
import { isUnknownToLegacy, methodOf } from '../../protocol/methods/methods.ts';
import { clientCapabilitiesKey, type Envelope, readClientInfo } from '../../protocol/modern/envelope.ts';
import type { RequestHeaders } from '../../protocol/modern/mirrored-headers.ts';
import { type Retry, readRetry } from '../../protocol/modern/retry.ts';
import type { Principal } from '../../protocol/principal.ts';
import { anonymous, isSame } from '../../protocol/principal.ts';
import {
  type ClientFeature,
  capabilitiesOf,
  readClientFeatures,
} from '../../protocol/translate/modern-on-legacy/askable.ts';
import { toDiscovery } from '../../protocol/translate/modern-on-legacy/legacy-discovery.ts';
import { asLegacyNotification } from '../../protocol/translate/modern-on-legacy/legacy-request.ts';
import type { Isolation } from '../../server/isolation.ts';
import { keyOfGroupSession } from '../../session/session-key.ts';
import type { Changes } from '../../store/shared/changes.ts';
import type { Values } from '../../store/shared/values.ts';
import { StoreUnavailable } from '../../store/store-unavailable.ts';
import { detach } from '../../util/boundary.ts';
import { BoundedMap } from '../../util/bounded-map.ts';
import { within } from '../../util/timing/within.ts';
import type { CredentialMarks } from '../keys/credential-marks.ts';
import type { RequestStateContent, RequestStates } from '../keys/request-state.ts';
import { legacyForm, modernForm, needsSession } from './client-form.ts';
import { GroupCall } from './group-call.ts';
import { type GroupMember, groupTopic, stateBinding } from './group-member.ts';
import type { GroupCallHost, GroupRequest } from './group-request.ts';
import { GroupSession, type GroupSessionHost, type GroupSessionParts, type OpenGroupSession } from './group-session.ts';
import { GroupTools, type ToolListOwner } from './group-tools.ts';
import type { ParkedCall } from './rounds/parked-call.ts';
import { GroupSubscriptions } from './subscriptions/group-subscriptions.ts';

export interface GroupsOptions extends GroupSessionHost {
  readonly states: RequestStates;
  /** Marks of credentials: a client with other credentials for the server counts as somebody else (P11). */
  readonly marks: CredentialMarks;
  /** Which clients share sessions now, if they declare the same capabilities (docs/decisions/0028). */
  readonly isolation: () => Isolation;
  /** The most sessions of one group. With more than one, each call goes to the one with the fewest open calls. */
  readonly poolMax: number;
  /** The changes that servers of groups announce, on any instance. */
  readonly changes: Changes;
  readonly values: Values;
  /** The most subscriptions at once. */
  readonly maxListeners: number;
  /** How long a request waits at the input gate, and a parked call for its client, in milliseconds. */
  readonly requestIdleMs: number;
  /** A tool is called in a process of its own because of `isolation`. Called once: the next call is no news. */
  readonly onIsolatedCall: () => void;
}

/** The sender of a request, apart from the request itself. */
export interface GroupCaller {
  readonly principal: Principal;
  readonly forwarded: ForwardedHeaders | undefined;
}

/** How long a request of the gateway's own waits for its response. */
const ownTimeoutMs = 10_000;

/** How long after its time limit a parked call is certainly over, also if the limit is checked only now and then. */
const unresumedMs = 30_000;

/** How many sessions, and answers to `initialize`, are remembered; for others the server is asked again (P8). */
const maxSessions = 1_000;

/**
 * A legacy server as its modern clients see it (docs/design.md, D7, docs/decisions/0027), and a server of either era as
 * legacy clients without a session see it.
 *
 * The gateway opens sessions as a client and runs the requests there. Each group of clients that may share has one
 * session, or `poolMax` of them if the server keeps no state. Any instance serves any request: it finds a session by its
 * key.
 */
export class Groups {
  readonly #options: GroupsOptions;
  readonly #sessions = new BoundedMap<string, GroupSession>(maxSessions);
  /** The newest answers to `initialize`, by the group and the declared capabilities. Nobody else gets them (P11). */
  readonly #opened = new BoundedMap<string, Omit<OpenGroupSession, 'handle'>>(maxSessions);
  /** Makes the ids of this instance's requests unique among all instances, as names. */
  readonly #instance = randomBytes(6).toString('base64url');
  /** Random: the requests of several instances meet in one session. One whose id is in use is renumbered there. */
  #lastId = randomInt(maxForeignId);
  #hasIsolatedCalls = false;
  readonly #listeners: GroupSubscriptions;
  readonly #tools = new GroupTools((owner, cursor) =>
    this.#listTools(owner, cursor).catch((cause: unknown) => {
      this.#reasonOf(cause); // the call itself reports the failure to the client
      return undefined;
    }),
  );
  readonly #host: GroupCallHost;
  /** The sessions of the newest request's group: the next request mostly needs the same. */
  #newest: (GroupKey & { readonly sessions: SessionsOfGroup }) | undefined;

  constructor(options: GroupsOptions) {
    this.#options = options;
    this.#host = this.#hostOfCalls();
    this.#listeners = new GroupSubscriptions(options.changes, options.maxListeners);
  }

  /** Ends the subscriptions in order (P9). */
  close(): void {
    this.#listeners.close();
  }

  /** Checks the mirrored parameters of a `tools/call` of the modern era. */
  checkParams(
    call: Message,
    headers: RequestHeaders,
    { principal, forwarded }: GroupCaller,
  ): ReturnType<GroupTools['check']> {
    return this.#tools.check(call, headers, { ...this.#sharerOf({ principal, credentials: '' }), forwarded });
  }

  /** Serves a request of the modern era, whose envelope and headers were checked. */
  request(request: Message, { logLevel }: Envelope, caller: GroupCaller, answer: Answer): void {
    this.#reportFailure(this.#serve(request, logLevel, caller, answer), answer);
  }

  /**
   * Serves a request of the legacy era that names no session, at a server of either era (docs/decisions/0031). Such a
   * client cannot be asked for input, and requests that only a session could remember are refused.
   */
  sessionless(request: Message, caller: GroupCaller, answer: Answer): void {
    if (needsSession(request)) return answer.fault('session_required');
    this.#reportFailure(this.#serveSessionless(request, caller, answer), answer);
  }

  /**
   * Sends a modern client's notification to the server, in each session of its group. No session is opened for it.
   * @returns false if there is no session to send it to
   */
  async notify(notification: Message, caller: GroupCaller): Promise<boolean> {
    try {
      return await this.#notify(notification, caller);
    } catch (cause) {
      this.#reasonOf(cause);
      return false;
    }
  }

  async #notify(notification: Message, caller: GroupCaller): Promise<boolean> {
    const declared = memberRange(notification, 'meta', clientCapabilitiesKey);
    const askable = declared
      ? readClientFeatures(notification.text.subarray(declared.start, declared.end))
      : noFeatures;
    const member = await this.#memberOf(caller, notification);
    if (this.#isAlone(member)) return false;
    const { forwarded } = caller;
    const group = { ...this.#sharerOf(member), capabilitiesText: capabilitiesOf(askable), forwarded };
    const message = asLegacyNotification(notification);
    const sessions = this.#sessionsOf(group);
    const refusals = await Promise.all(
      Array.from({ length: this.#options.poolMax }, (_, index) => sessions(index).send([message], forwarded)),
    );
    return refusals.includes(undefined);
  }

  async #serveSessionless(request: Message, caller: GroupCaller, answer: Answer): Promise<void> {
    const member = await this.#memberOf(caller, request);
    if (answer.isOver) return;
    const { forwarded } = caller;
    const groupRequest: GroupRequest = {
      request,
      member,
      form: legacyForm,
      askable: noFeatures,
      logLevel: undefined,
      answer,
      forwarded,
    };
    const group = { ...this.#sharerOf(member), capabilitiesText: capabilitiesOf(noFeatures), forwarded };
    await new GroupCall(this.#host, groupRequest).run(this.#sessionFor(group));
  }

  /** Returns the owner of a request: at once for a request without credentials for the server, which most are. */
  #memberOf({ principal, forwarded = noHeaders }: GroupCaller, request?: Message): GroupMember | Promise<GroupMember> {
    const { marks, server } = this.#options;
    const place = request && server.affinity?.placeOfRequest(principal, request);
    const isAlone = place?.kind === 'own';
    const suffix = place?.kind === 'named' ? ` ${place.mark}` : '';
    if (forwarded === noHeaders) return { principal, credentials: suffix, isAlone };
    return marks
      .markOf(server.name, forwarded)
      .then((mark) => ({ principal, credentials: `${mark}${suffix}`, isAlone }));
  }

  /** True if no other request may reach the session that serves a request. */
  #isAlone({ isAlone }: Pick<GroupMember, 'isAlone'>): boolean {
    return isAlone === true || this.#options.isolation() === 'request';
  }

  #reportIsolation(): void {
    if (this.#hasIsolatedCalls || this.#options.isolation() !== 'request') return;
    this.#hasIsolatedCalls = true;
    this.#options.onIsolatedCall();
  }

  #reportFailure(served: Promise<void>, answer: Answer): void {
    served.catch((cause: unknown) => {
      const reason = this.#reasonOf(cause);
      if (!answer.isOver) answer.fault(reason);
    });
  }

  #reasonOf(cause: unknown): Reason {
    if (cause instanceof StoreUnavailable) return 'store_unavailable';
    this.#options.onFailed(cause);
    return 'internal';
  }

  async #serve(request: Message, logLevel: Envelope['logLevel'], caller: GroupCaller, answer: Answer): Promise<void> {
    const { method } = request;
    if (isUnknownToLegacy(method)) return answer.fault('method_removed');
    if (method === 'tools/call') this.#reportIsolation();
    const declared = memberRange(request, 'meta', clientCapabilitiesKey) as { start: number; end: number };
    const askable = readClientFeatures(request.text.subarray(declared.start, declared.end));
    const identified = this.#memberOf(caller, request);
    const member = identified instanceof Promise ? await identified : identified;
    if (answer.isOver) return;
    const { forwarded } = caller;
    const infoText = this.#isAlone(member) ? readClientInfo(request) : undefined;
    const group = { ...this.#sharerOf(member), capabilitiesText: capabilitiesOf(askable), infoText, forwarded };
    if (method === 'server/discover') return this.#discover(request, group, answer);
    if (method === 'subscriptions/listen') return this.#listen(request, group, answer);
    const groupRequest: GroupRequest = { request, member, form: modernForm, askable, logLevel, answer, forwarded };
    const retry = methodOf(method).mayAsk ? readRetry(request) : undefined;
    if (retry !== undefined) return this.#retry(groupRequest, retry);
    // Without a key for states a question could not be passed on, and after the call was sent that is too late to find
    // out.
    if (askable.size > 0 && methodOf(method).mayAsk) await this.#options.states.ready();
    await new GroupCall(this.#host, groupRequest).run(this.#sessionFor(group));
  }

  async #retry(groupRequest: GroupRequest, { state, answers }: Retry): Promise<void> {
    const { answer, request, member } = groupRequest;
    const binding = stateBinding(this.#options.server, request, member);
    const content = state && (await this.#options.states.open<ParkedCall>(binding, state).catch(toInputNotTaken));
    if (answer.isOver) return;
    if (content === 'input_not_taken') return answer.fault(content);
    if (!content) return answer.fault('bad_request_state');
    const { place: key } = content.value;
    // A retry opens no session, so the capabilities for `initialize` do not matter; nor is the session remembered.
    const sharer = this.#sharerOf(member);
    const parts = {
      key,
      principal: sharer.principal,
      capabilitiesText: '{}',
      topic: groupTopic(this.#options.server, sharer),
    };
    const session = this.#sessions.get(key) ?? new GroupSession(this.#options, parts, () => undefined);
    await new GroupCall(this.#host, groupRequest).resume(session, content, answers);
  }

  #hostOfCalls(): GroupCallHost {
    const { server, states, values, requestIdleMs } = this.#options;
    return {
      values,
      idleMs: requestIdleMs,
      newId: () => this.#newId(),
      nameOf: (id) => this.#nameOf(id),
      hasSeveralUsers: () => this.#options.isolation() === 'shared',
      seal: ({ request, member }, round, value) => {
        const content: RequestStateContent<ParkedCall> = { round, expiresAtMs: Date.now() + requestIdleMs, value };
        return states.seal(stateBinding(server, request, member), content);
      },
      reasonOf: (cause) => this.#reasonOf(cause),
      onTools: ({ member, forwarded }, response) =>
        this.#tools.learn(response, { ...this.#sharerOf(member), forwarded }),
      onParked: (session, { member }) => {
        if (this.#isAlone(member))
          setTimeout(() => detach('session', this.#endUnused(session)), requestIdleMs + unresumedMs).unref();
      },
      onOver: (session, { member }) => {
        if (this.#isAlone(member)) this.#endSession(session);
      },
    };
  }

  /** Gets a page of the server's tools, in the session of the group that declares no capabilities. */
  async #listTools({ principal, forwarded }: ToolListOwner, cursor: string | undefined): Promise<Buffer | undefined> {
    const { credentials } = await this.#memberOf({ principal, forwarded });
    const group = { principal, credentials, capabilitiesText: capabilitiesOf(noFeatures), forwarded };
    const session = this.#sessionsOf(group)(0);
    try {
      const open = await session.open(forwarded);
      if (typeof open === 'string') return undefined;
      const params = cursor === undefined ? {} : { cursor };
      const request = createMessage({ id: this.#newId(), method: 'tools/list', params });
      const response = await within(session.send([request], forwarded), ownTimeoutMs, () => undefined);
      return typeof response === 'object' ? response.text : undefined;
    } finally {
      if (this.#options.isolation() === 'request') this.#endSession(session);
    }
  }

  #newId(): number {
    this.#lastId = (this.#lastId % maxForeignId) + 1;
    return this.#lastId;
  }

  #nameOf(id: number): string {
    return `${this.#instance}-${id}`;
  }

  /**
   * Returns the owner whose sessions a client uses. A parked call stays bound to the client itself (`stateBinding`).
   */
  #sharerOf(member: GroupMember): GroupMember {
    return this.#options.isolation() === 'shared' ? { ...member, principal: anonymous } : member;
  }

  #listen(request: Message, group: GroupKey, answer: Answer): Promise<void> {
    const session = this.#sessionsOf(group)(0);
    return this.#listeners.listen({
      request,
      answer,
      session,
      forwarded: group.forwarded,
      name: this.#nameOf(this.#newId()),
      topic: groupTopic(this.#options.server, group),
      onOver: () => {
        if (this.#isAlone(group)) this.#endSession(session);
      },
    });
  }

  /** Answers `server/discover` with the server's answer to `initialize`. */
  async #discover(request: Message, group: GroupKey, answer: Answer): Promise<void> {
    const known =
      this.#opened.get(openedKey(groupTopic(this.#options.server, group), group.capabilitiesText)) ??
      (await this.#open(group));
    if (answer.isOver) return;
    if (typeof known === 'string') {
      const refusal = known === 'server_start_failed' ? this.#sessionsOf(group)(0).refusal : undefined;
      if (refusal === undefined) return answer.fault(known);
      return answer.response(withId(refusal, request.id as RequestId), 200);
    }
    const id = memberRange(request, 'message', 'id') as { start: number; end: number };
    // Clients that open with `initialize` can use the revision that the server negotiated, so it is listed too.
    const versions = [...new Set([known.protocolVersion, ...modernRevisions])];
    answer.response(toDiscovery(known.opened, request.text.toString('utf8', id.start, id.end), versions), 200);
  }

  async #open(group: GroupKey): Promise<Omit<OpenGroupSession, 'handle'> | Reason> {
    const session = this.#sessionsOf(group)(0);
    const open = await session.open(group.forwarded);
    if (this.#isAlone(group)) this.#endSession(session);
    return open;
  }

  /** Returns the session of a group for a call: the first one with the fewest open calls. */
  #sessionFor(group: GroupKey): GroupSession {
    const sessions = this.#sessionsOf(group);
    let found = sessions(0);
    const count = this.#isAlone(group) ? 1 : this.#options.poolMax;
    for (let index = 1; index < count && found.openCalls > 0; index += 1) {
      const other = sessions(index);
      if (other.openCalls < found.openCalls) found = other;
    }
    return found;
  }

  /** Returns the sessions of a group by number. A client that is alone has one, which is new. */
  #sessionsOf(group: GroupKey): SessionsOfGroup {
    const { principal, capabilitiesText, credentials, infoText } = group;
    const { server } = this.#options;
    if (this.#isAlone(group)) {
      const topic = groupTopic(server, group);
      const key = keyOfGroupSession([server.name, server.digest, randomBytes(32).toString('base64url')]);
      return () => this.#findOrCreateSession({ key, principal, capabilitiesText, infoText, topic });
    }
    const newest = this.#newest;
    const isOfGroup = newest?.capabilitiesText === capabilitiesText && newest.credentials === credentials;
    if (isOfGroup && isSame(newest.principal, principal)) return newest.sessions;
    const { issuer, subject, client } = principal;
    const keyParts = [server.name, server.digest, issuer, subject, client, capabilitiesText, credentials];
    const topic = groupTopic(server, group);
    const known: GroupSession[] = [];
    const sessions: SessionsOfGroup = (index) => {
      const open = (key: string): GroupSession =>
        this.#findOrCreateSession({ key, principal, capabilitiesText, topic });
      known[index] ??= open(keyOfGroupSession([...keyParts, String(index)]));
      return known[index];
    };
    this.#newest = { ...group, sessions };
    return sessions;
  }

  #findOrCreateSession(parts: GroupSessionParts): GroupSession {
    const known = this.#sessions.get(parts.key);
    if (known !== undefined) return known;
    const session = new GroupSession(this.#options, parts, (opened) =>
      this.#opened.set(openedKey(parts.topic, parts.capabilitiesText), opened),
    );
    this.#sessions.set(parts.key, session);
    return session;
  }

  /** Ends a session whose call was given up. It stays if any instance has resumed the call. */
  async #endUnused(session: GroupSession): Promise<void> {
    await session.send([], undefined, { turnMs: 0, endsUnused: true });
  }

  /** Ends a session that served one request. */
  #endSession(session: GroupSession): void {
    this.#sessions.delete(session.key);
    detach('session', session.end());
  }
}

/**
 * Maps a store that is away to `input_not_taken`: the round cannot be read now, and its call waits, on whichever
 * instance.
 */
function toInputNotTaken(cause: unknown): 'input_not_taken' {
  if (cause instanceof StoreUnavailable) return 'input_not_taken';
  throw cause;
}

const noFeatures: ReadonlySet<ClientFeature> = new Set();

/** Returns the key of an answer to `initialize`: only clients that would send the same `initialize` may get it. */
const openedKey = (topic: string, capabilitiesText: string): string => JSON.stringify([topic, capabilitiesText]);

/** The properties that the clients of one group share. */
interface GroupKey extends GroupMember {
  readonly capabilitiesText: string;
  /** See `GroupSessionParts`. */
  readonly infoText?: string | undefined;
  readonly forwarded: ForwardedHeaders | undefined;
}

/** Finds or creates a session of a group by its number, from 0 to `poolMax` - 1. */
type SessionsOfGroup = (index: number) => GroupSession;
