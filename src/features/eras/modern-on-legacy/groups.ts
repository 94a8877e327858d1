// src/features/eras/modern-on-legacy: serves modern clients, and legacy clients without a session, in sessions of the gateway's own.

import { randomBytes } from 'node:crypto';
import type { Isolation } from '../../../config/servers/process-sharing.ts';
import type { Answer } from '../../../core/call/answer.ts';
import type { CredentialMarks } from '../../../core/keys/credential-marks.ts';
import type { RequestStates } from '../../../core/keys/request-state.ts';
import type { Reason, RequestId } from '../../../core/protocol/faults.ts';
import { noHeaders, type RequestClient, withoutSender } from '../../../core/protocol/http/forwarded-headers.ts';
import { modernRevisions } from '../../../core/protocol/known-revisions.ts';
import { withId } from '../../../core/protocol/message/changed-message.ts';
import { createMessage, type Message, memberRange } from '../../../core/protocol/message/message.ts';
import { type ClientFeature, capabilitiesOf, readClientFeatures } from '../../../core/protocol/methods/askable.ts';
import { isUnknownToLegacy, methodOf } from '../../../core/protocol/methods/methods.ts';
import { clientCapabilitiesKey, type Envelope, readClientInfo } from '../../../core/protocol/modern/envelope.ts';
import { type Retry, readRetry } from '../../../core/protocol/modern/retry.ts';
import { anonymous, isSame, type Principal } from '../../../core/protocol/principal.ts';
import { keyOfGroupSession } from '../../../core/session/session-key.ts';
import type { Changes, Values } from '../../../core/store/shared/shared-data.ts';
import { ifUnavailable, StoreUnavailable } from '../../../core/store/store-unavailable.ts';
import { BoundedMap } from '../../../core/util/bounded-map.ts';
import { within } from '../../../core/util/timing/within.ts';
import { type InitializedServer, toDiscovery } from '../translate/modern-on-legacy/legacy-discovery.ts';
import { asLegacyNotification } from '../translate/modern-on-legacy/legacy-request.ts';
import { legacyForm, modernForm, needsSession } from './client-form.ts';
import { CallIds, GroupCall, type GroupCallParts, type GroupRequest } from './group-call.ts';
import { type GroupClient, groupTopic, stateBinding } from './group-client.ts';
import { GroupSession, type GroupSessionHost, type GroupSessionParts } from './group-session.ts';
import { type ParkedCall, parseFollowedCall } from './rounds/parked-call.ts';
import { GroupSubscriptions } from './subscriptions/group-subscriptions.ts';

export interface GroupsOptions extends GroupSessionHost {
  readonly states: RequestStates;
  /** Marks of credentials: a client with other credentials for the server counts as somebody else (P11). */
  readonly marks: CredentialMarks;
  /** Which clients share sessions now, if they declare the same capabilities (docs/decisions/0164). */
  readonly isolation: () => Isolation;
  /** The most sessions of one group. With more than one, each call goes to the one with the fewest open calls. */
  readonly poolMax: number;
  /** The changes that servers of groups announce, on any instance. */
  readonly changes: Changes;
  readonly values: Values;
  /** The most subscriptions at once. */
  readonly maxListeners: number;
  /** How long a parked call waits for its client, in milliseconds. */
  readonly requestIdleMs: number;
  /** A tool is called in a process of its own because of `isolation`. Called once: the next call is no news. */
  readonly onIsolatedCall: () => void;
}

/** How long a request of the gateway's own waits for its response. */
const ownTimeoutMs = 10_000;

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
  readonly #opened = new BoundedMap<string, InitializedServer>(maxSessions);
  /** The sessions of the newest request's group, by number: the next request mostly needs the same. */
  #newest: { readonly client: GroupClient; readonly sessions: GroupSession[] } | undefined;
  #hasIsolatedCalls = false;
  readonly #listeners: GroupSubscriptions;
  readonly #parts: GroupCallParts;

  constructor(options: GroupsOptions) {
    this.#options = options;
    const { server, states, values, requestIdleMs, changes, maxListeners } = options;
    const reasonOf = (cause: unknown): Reason => this.#reasonOf(cause);
    this.#parts = { server, states, values, ids: new CallIds(), idleMs: requestIdleMs, reasonOf };
    this.#listeners = new GroupSubscriptions(changes, maxListeners);
  }

  /** Ends the subscriptions in order (P9). */
  close(): void {
    this.#listeners.close();
  }

  /** True if users have sessions of their own. */
  get distinguishesUsers(): boolean {
    return this.#options.isolation() !== 'shared';
  }

  /** Gets a page of the server's list of tools; undefined if the server does not answer in time. */
  listTools(cursor: string | undefined, caller: RequestClient): Promise<Buffer | undefined> {
    return this.#listTools(cursor, caller).catch((cause: unknown) => {
      this.#reasonOf(cause); // the call that needs the list reports the failure to the client
      return undefined;
    });
  }

  /** Serves a request of the modern era, whose envelope and headers were checked. */
  request(request: Message, { logLevel }: Envelope, caller: RequestClient, answer: Answer): void {
    this.#reportFailure(this.#serve(request, logLevel, caller, answer), answer);
  }

  /**
   * Reads on with a request of the modern era that another instance has sent to its server.
   * @param point what `Answer.pointOf` has told there
   */
  follow(request: Message, { logLevel }: Envelope, caller: RequestClient, answer: Answer, point: string): void {
    this.#reportFailure(this.#follow(request, logLevel, caller, answer, point), answer);
  }

  /**
   * Serves a request of the legacy era that names no session, at a server of either era (docs/decisions/0027). Such a
   * client cannot be asked for input, and requests that only a session could remember are refused.
   */
  sessionless(request: Message, caller: RequestClient, answer: Answer): void {
    if (needsSession(request)) return answer.fault('session_required');
    this.#reportFailure(this.#serveSessionless(request, caller, answer), answer);
  }

  /**
   * Sends a modern client's notification to the server, in each session of its group. No session is opened for it.
   * @returns false if there is no session to send it to
   */
  async notify(notification: Message, caller: RequestClient): Promise<boolean> {
    try {
      const client = await this.#clientOf(caller, featuresOf(notification), notification);
      if (client.isAlone) return false;
      const message = asLegacyNotification(notification);
      const sessions = Array.from({ length: this.#options.poolMax }, (_, index) => this.#sessionOf(client, index));
      const refusals = await Promise.all(sessions.map((session) => session.send([message], client.forwarded)));
      return refusals.includes(undefined);
    } catch (cause) {
      this.#reasonOf(cause);
      return false;
    }
  }

  async #serveSessionless(request: Message, caller: RequestClient, answer: Answer): Promise<void> {
    const client = await this.#clientOf(caller, noFeatures, request);
    if (answer.isOver) return;
    await this.#run({ request, client, form: legacyForm, logLevel: undefined, answer });
  }

  async #serve(request: Message, logLevel: Envelope['logLevel'], caller: RequestClient, answer: Answer): Promise<void> {
    const { method } = request;
    if (isUnknownToLegacy(method)) return answer.fault('method_removed');
    if (method === 'tools/call') this.#reportIsolation();
    const features = featuresOf(request);
    const identified = this.#clientOf(caller, features, request);
    const client = identified instanceof Promise ? await identified : identified;
    if (answer.isOver) return;
    if (method === 'server/discover') return this.#discover(request, client, answer);
    if (method === 'subscriptions/listen') return this.#listen(request, client, answer);
    const groupRequest: GroupRequest = { request, client, form: modernForm, logLevel, answer };
    const { mayAsk } = methodOf(method);
    const retry = mayAsk ? readRetry(request) : undefined;
    if (retry !== undefined) return this.#retry(groupRequest, retry);
    // Without a key for states a question could not be passed on, and after the call was sent that is too late to find
    // out.
    if (features.size > 0 && mayAsk) await this.#options.states.ready();
    await this.#run(groupRequest);
  }

  async #follow(
    request: Message,
    logLevel: Envelope['logLevel'],
    caller: RequestClient,
    answer: Answer,
    point: string,
  ): Promise<void> {
    const client = await this.#clientOf(caller, featuresOf(request), request);
    if (answer.isOver) return;
    const call = parseFollowedCall(point);
    const session = this.#sessionAt(call.place, client);
    await new GroupCall(this.#parts, { request, client, form: modernForm, logLevel, answer }).follow(session, call);
  }

  /** Runs a request in the session of its group that has the fewest open calls, the first one of these. */
  #run(groupRequest: GroupRequest): Promise<void> {
    const { request, client } = groupRequest;
    let found = this.#firstSessionOf(client, request);
    const count = client.isAlone ? 1 : this.#options.poolMax;
    for (let index = 1; index < count && found.openCalls > 0; index += 1) {
      const other = this.#sessionOf(client, index);
      if (other.openCalls < found.openCalls) found = other;
    }
    return new GroupCall(this.#parts, groupRequest).run(found);
  }

  async #retry(groupRequest: GroupRequest, { state, answers }: Retry): Promise<void> {
    const { answer, request, client } = groupRequest;
    const { server, states } = this.#options;
    const binding = stateBinding(server, request, client);
    const content = state && (await states.open<ParkedCall>(binding, state).catch(inputNotTaken));
    if (answer.isOver) return;
    if (content === 'input_not_taken') return answer.fault(content);
    if (!content) return answer.fault('bad_request_state');
    const session = this.#sessionAt(content.value.place, client);
    await new GroupCall(this.#parts, groupRequest).resume(session, content, answers);
  }

  #listen(request: Message, client: GroupClient, answer: Answer): Promise<void> {
    const { ids } = this.#parts;
    return this.#listeners.listen({
      request,
      answer,
      session: this.#firstSessionOf(client, request),
      forwarded: client.forwarded,
      name: ids.nameOf(ids.next()),
      topic: groupTopic(this.#options.server, client),
    });
  }

  /** Answers `server/discover` with the server's answer to `initialize`. */
  async #discover(request: Message, client: GroupClient, answer: Answer): Promise<void> {
    let known = this.#opened.get(openedKey(groupTopic(this.#options.server, client), client.capabilitiesText));
    if (known === undefined) {
      const session = this.#firstSessionOf(client, request);
      const open = await session.open(client.forwarded);
      session.release();
      if (answer.isOver) return;
      if (typeof open === 'string') {
        const refusal = open === 'server_start_failed' ? session.refusal : undefined;
        if (refusal === undefined) return answer.fault(open);
        return answer.response(withId(refusal, request.id as RequestId), 200);
      }
      known = open.opened;
    }
    const id = memberRange(request, 'message', 'id') as { start: number; end: number };
    // Clients that open with `initialize` can use the revision that the server negotiated, so it is listed too.
    const versions = [...new Set([known.protocolVersion, ...modernRevisions])];
    answer.response(toDiscovery(known, request.text.toString('utf8', id.start, id.end), versions), 200);
  }

  /** Gets a page of the server's tools, in the session of the group that declares no capabilities. */
  async #listTools(cursor: string | undefined, { principal, forwarded }: RequestClient): Promise<Buffer | undefined> {
    const client = await this.#clientOf({ principal, forwarded }, noFeatures);
    const session = this.#firstSessionOf(client);
    try {
      const open = await session.open(forwarded);
      if (typeof open === 'string') return undefined;
      const params = cursor === undefined ? {} : { cursor };
      const request = createMessage({ id: this.#parts.ids.next(), method: 'tools/list', params });
      const response = await within(session.send([request], forwarded), ownTimeoutMs, () => undefined);
      return typeof response === 'object' ? response.text : undefined;
    } finally {
      session.release();
    }
  }

  /** Returns the sender of a request: at once for a request without credentials for the server, which most are. */
  #clientOf(
    { principal, forwarded }: RequestClient,
    askable: ReadonlySet<ClientFeature>,
    request?: Message,
  ): GroupClient | Promise<GroupClient> {
    const { marks, server } = this.#options;
    const isolation = this.#options.isolation();
    const place = request && server.affinity?.placeOfRequest(principal, request);
    const clientWith = (mark: string): GroupClient => ({
      principal,
      owner: this.#ownerFor(principal),
      hasOtherUsers: isolation === 'shared',
      isAlone: isolation === 'request' || place?.kind === 'own',
      credentials: place?.kind === 'named' ? `${mark} ${place.mark}` : mark,
      askable,
      capabilitiesText: capabilitiesOf(askable),
      forwarded,
    });
    const identifying = withoutSender(forwarded ?? noHeaders);
    if (Object.keys(identifying).length === 0) return clientWith('');
    return marks.markOf(server.name, identifying).then(clientWith);
  }

  /** Returns the owner of the sessions that a principal uses. */
  #ownerFor(principal: Principal): Principal {
    return this.#options.isolation() === 'shared' ? anonymous : principal;
  }

  /** Returns the first session of a client's group. A client that is alone gets a new one. */
  #firstSessionOf(client: GroupClient, request?: Message): GroupSession {
    if (!client.isAlone) return this.#sessionOf(client, 0);
    const { server } = this.#options;
    const key = keyOfGroupSession([server.name, server.digest, randomBytes(32).toString('base64url')]);
    return this.#createSession(key, client, request && readClientInfo(request));
  }

  /** Returns a session of a client's group by its number, from 0 to `poolMax` - 1. */
  #sessionOf(client: GroupClient, index: number): GroupSession {
    if (this.#newest === undefined || !isSameGroup(this.#newest.client, client))
      this.#newest = { client, sessions: [] };
    const { sessions } = this.#newest;
    sessions[index] ??= this.#findSession(client, index);
    return sessions[index];
  }

  #findSession(client: GroupClient, index: number): GroupSession {
    const { server } = this.#options;
    const { owner, capabilitiesText, credentials } = client;
    const { issuer, subject, client: app } = owner;
    const parts = [server.name, server.digest, issuer, subject, app, capabilitiesText, credentials, String(index)];
    const key = keyOfGroupSession(parts);
    const known = this.#sessions.get(key);
    if (known !== undefined) return known;
    const session = this.#createSession(key, client);
    this.#sessions.set(key, session);
    return session;
  }

  /**
   * Returns the session of a call that goes on. One that is not known is not remembered. It is not opened, so the
   * capabilities do not matter.
   */
  #sessionAt(key: string, client: GroupClient): GroupSession {
    return this.#sessions.get(key) ?? this.#createSession(key, { ...client, capabilitiesText: '{}' });
  }

  /** @param infoText the `clientInfo` of the only client */
  #createSession(key: string, client: GroupClient, infoText?: string): GroupSession {
    const { owner: principal, capabilitiesText, isAlone: isForOne } = client;
    const topic = groupTopic(this.#options.server, client);
    const parts: GroupSessionParts = { key, principal, capabilitiesText, infoText, isForOne, topic };
    return new GroupSession(this.#options, parts, (opened) =>
      this.#opened.set(openedKey(topic, capabilitiesText), opened),
    );
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
}

/**
 * Maps a store that is away to `input_not_taken`: the round cannot be read now, and its call waits, on whichever
 * instance.
 */
const inputNotTaken = ifUnavailable('input_not_taken');

const noFeatures: ReadonlySet<ClientFeature> = new Set();

/** Returns what the sender of a message declares that it can be asked. A notification may declare nothing. */
function featuresOf(message: Message): ReadonlySet<ClientFeature> {
  const declared = memberRange(message, 'meta', clientCapabilitiesKey);
  return declared ? readClientFeatures(message.text.subarray(declared.start, declared.end)) : noFeatures;
}

/** True for clients of one group: they share the sessions of one owner. */
const isSameGroup = (one: GroupClient, other: GroupClient): boolean =>
  one.capabilitiesText === other.capabilitiesText &&
  one.credentials === other.credentials &&
  isSame(one.owner, other.owner);

/** Returns the key of an answer to `initialize`: only clients that would send the same `initialize` may get it. */
const openedKey = (topic: string, capabilitiesText: string): string => JSON.stringify([topic, capabilitiesText]);
