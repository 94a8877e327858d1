import type { RequestIds } from '../../../../core/backend/backend.ts';
import type { Call, StreamTarget } from '../../../../core/call/session-calls.ts';
import { Route } from '../../../../core/multiplex/route.ts';
import type { RequestId } from '../../../../core/protocol/faults.ts';
import { nextOwnId } from '../../../../core/protocol/ids/own-ids.ts';
import { scanObject, valueAt } from '../../../../core/protocol/json.ts';
import { createMessage, type Message } from '../../../../core/protocol/message/message.ts';
import { methodOf } from '../../../../core/protocol/methods/methods.ts';
import { isChange } from '../../../../core/protocol/modern/subscription-filter.ts';
import type { Principal } from '../../../../core/protocol/principal.ts';
import { accepted, faultAnswer, type Reply } from '../../../../core/reply/reply.ts';
import { isLeaving } from '../../../../core/session/end-reason.ts';
import type { GroupedSession, GroupRules, GroupWays, Unattributed } from '../../../../core/session/group-rules.ts';
import type { ClientPost, InputRound } from '../../../../core/session/session-handle.ts';
import { BoundedMap } from '../../../../core/util/bounded-map.ts';
import { attributeInGroup } from './attribution.ts';
import { EarlyRoots } from './early-roots.ts';
import { discardingAnswer } from './gateway-answer.ts';
import { InputGate } from './input-gate.ts';
import { SubscriptionLeases } from './subscription-leases.ts';

/** How many rounds are remembered (P8). A client that repeats an older round finds its server requests answered. */
const maxRounds = 10_000;

/** Stands for the users of calls that an earlier owner of a group's session has accepted. */
const formerUser: Principal = { issuer: '', subject: '', client: 'a former call' };

/**
 * What the session of a group adds to the way from its clients to the server (docs/decisions/0027): several users take
 * turns, listeners share subscriptions, rounds of input are taken once, and the server's log messages are asked for.
 */
export class SharedSession implements GroupRules {
  readonly #session: GroupedSession;
  readonly #ways: GroupWays;
  readonly #announce: (topic: string, change: Buffer | undefined) => void;
  readonly #leases: SubscriptionLeases;
  /** Finds the call that a message is about which names none. */
  readonly #route: Route<Call>;
  /** The server's first request for roots; undefined for a group whose clients have none. */
  readonly #earlyRoots: EarlyRoots | undefined;
  /** Set for a group whose clients accept server requests. */
  readonly #gate: InputGate | undefined;
  /** The digests of the rounds of input that the session has received, by name. Undefined for none. */
  #rounds: BoundedMap<string, string> | undefined;
  /** True once a call has named its user: until then, all calls are of one user. */
  #hasUsers = false;
  /** True once this owner has asked the server for its log messages. */
  #hasRequestedLogs = false;

  /** @param announce tells the clients of a topic of a change; undefined if anything may have changed */
  constructor(session: GroupedSession, ways: GroupWays, announce: (topic: string, change: Buffer | undefined) => void) {
    const { client, calls, limits } = session;
    this.#session = session;
    this.#ways = ways;
    this.#announce = announce;
    this.#leases = new SubscriptionLeases(client, ways);
    this.#route = new Route(
      calls,
      (call) => call,
      () => !this.#hasUsers,
    );
    if (session.earlier !== undefined && session.earlier.pending.length > 0) this.#noteUser(formerUser);
    calls.onTaken = (call) => this.#handleTaken(call);
    const declared = valueAt(client.initialize, ['params', 'capabilities']);
    const capabilities = declared && scanObject(declared);
    if (typeof capabilities !== 'object' || capabilities.keys.length === 0) return;
    this.#gate = new InputGate(calls, ways, limits.requestIdleMs);
    if (valueAt(client.initialize, ['params', 'capabilities', 'roots']) !== undefined)
      this.#earlyRoots = new EarlyRoots(calls, ways);
  }

  admits(post: ClientPost, reply: Reply): boolean {
    if (this.#gate?.admits(post, reply) === false) return false;
    const { group = {}, messages } = post;
    if (group.endsUnused) {
      if (this.#session.calls.size === 0) this.#session.endFor('idle');
      reply.answer(accepted);
      return false;
    }
    if (group.keeps !== undefined) {
      const kept = this.callOf(group.keeps);
      if (kept !== undefined) kept.isKept = true;
      reply.answer(accepted);
      return false;
    }
    if (this.#leases.settles(messages[0], group, reply)) return false;
    const { round, logLevel } = group;
    if (round !== undefined && !this.#admitsRound(round)) {
      reply.answer(faultAnswer('bad_request_state', null));
      return false;
    }
    const continued = round && this.callOf(round.call);
    if (continued !== undefined) continued.logLevel = logLevel;
    if (logLevel !== undefined) this.#requestLogs();
    return true;
  }

  callOf(id: RequestId): Call | undefined {
    const found = this.#session.calls.ofClient(id);
    return found.length === 1 ? found[0] : undefined;
  }

  holds(call: Call, request: Message, user: Principal | undefined, send: () => void): boolean | 'full' {
    if (user !== undefined) this.#noteUser(user);
    if (this.#earlyRoots === undefined || !methodOf(call.method).mayAsk) return false;
    return this.#earlyRoots.holds(call, request.text.length, send);
  }

  attribute(message: Message, relatedRequests: RequestIds | undefined): StreamTarget | Unattributed {
    if (message.kind === 'request' && this.#earlyRoots?.keeps(message)) return 'kept';
    return attributeInGroup(message, this.#session.calls, this.#route, relatedRequests);
  }

  noteAnswered(response: Message): void {
    this.#earlyRoots?.noteAnswered(response);
  }

  /** A group has no GET stream: its clients subscribe to chosen changes, and to nothing else. */
  announce(message: Message): boolean {
    if (!isChange(message)) return false;
    this.#tell(message.text);
    return true;
  }

  noteLost(): void {
    this.#earlyRoots?.noteLost();
  }

  noteRestored(): void {
    this.#earlyRoots?.reset();
    this.#tell(undefined);
  }

  /**
   * The instance that read such a call was lost before it could give its client a request state. With `share: all`, other
   * clients wait for the end of the call.
   */
  endExpired(isRead: (stream: number) => boolean): readonly Call[] {
    const { calls, limits } = this.#session;
    this.#leases.endExpired();
    const { unreadMs = Number.POSITIVE_INFINITY } = limits;
    if (unreadMs === Number.POSITIVE_INFINITY || calls.size === 0) return [];
    const now = performance.now();
    return calls.all().filter((call) => {
      const { answer, hasAsked, isKept } = call;
      const isUnread = hasAsked === true && answer.stream !== undefined && !isRead(answer.stream);
      if (!isUnread || isKept) call.unreadSince = undefined;
      else call.unreadSince ??= now;
      return call.unreadSince !== undefined && now - call.unreadSince >= unreadMs;
    });
  }

  close(): void {
    const { endReason } = this.#session;
    const isLeft = endReason !== undefined && isLeaving(endReason);
    // This instance has no time left to open the next session, or to wait for another instance.
    this.#gate?.close(isLeft ? 'draining' : 'unknown_session');
    this.#earlyRoots?.close();
  }

  #noteUser(user: Principal): void {
    this.#hasUsers = true;
    this.#route.users.note(user);
  }

  #tell(change: Buffer | undefined): void {
    const { topic } = this.#session.client;
    if (topic !== undefined) this.#announce(topic, change);
  }

  /** A call is over. No client can answer the questions that the server has asked for it. */
  #handleTaken(call: Call): void {
    const { serverRequests, endReason } = this.#session;
    if (endReason !== undefined) return; // the next owner of the session may go on with the questions
    const refused = serverRequests.refuseFor(call, (id) => this.#earlyRoots?.isAsked(id) === true);
    for (const refusal of refused) this.#ways.send(refusal);
    this.#earlyRoots?.noteTaken(call);
    this.#gate?.noteTaken(call);
  }

  /**
   * False if the round of input was given other answers before (2026-07-28, basic/patterns/mrtr). Each round is consumed
   * once. A client that repeats a round because it got no answer gets the same outcome.
   */
  #admitsRound({ name, digest }: InputRound): boolean {
    this.#rounds ??= new BoundedMap(maxRounds);
    const known = this.#rounds.get(name);
    if (known === undefined) this.#rounds.set(name, digest);
    return known === undefined || known === digest;
  }

  /**
   * A server sends only the log messages that a client has asked for. The gateway asks for all of them, and filters them
   * by request. A server that does not declare `logging` may send some all the same, and knows no level.
   */
  #requestLogs(): void {
    const { client, handshake } = this.#session;
    if (this.#hasRequestedLogs || client.hasLogLevel) return;
    this.#hasRequestedLogs = true;
    if (!Object.hasOwn(Object(handshake?.capabilities), 'logging')) return;
    const request = createMessage({ id: nextOwnId(), method: 'logging/setLevel', params: { level: 'debug' } });
    this.#ways.call(request, discardingAnswer);
  }
}
