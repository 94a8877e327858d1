import type { SessionAnswer } from '../../call/call-answer.ts';
import type { Call } from '../../call/session-calls.ts';
import { Route } from '../../multiplex/route.ts';
import type { RequestId } from '../../protocol/faults.ts';
import type { Message } from '../../protocol/message/message.ts';
import type { Principal } from '../../protocol/principal.ts';
import { accepted, faultAnswer, type Reply } from '../../reply/reply.ts';
import { BoundedMap } from '../../util/bounded-map.ts';
import { isLeaving } from '../end-reason.ts';
import type { Outbound } from '../outbound/outbound.ts';
import type { ServerLink } from '../server/server-link.ts';
import type { SessionCore } from '../session-core.ts';
import type { ClientPost, InputRound } from '../session-handle.ts';
import { EarlyRoots } from './early-roots.ts';
import { discardingAnswer, GatewayAnswer, logLevelRequest, pingRequest } from './gateway-requests.ts';
import { InputGate } from './input-gate.ts';
import { SubscriptionLeases } from './subscription-leases.ts';

/** How many rounds are remembered (P8). A client that repeats an older round finds its server requests answered. */
const maxRounds = 10_000;

/** Stands for the users of calls that an earlier owner of a group's session has accepted. */
const formerUser: Principal = { issuer: '', subject: '', client: 'a former call' };

/** The way of all clients to their server, which goes on behind a group's own rules. */
export interface InboundWay {
  post(post: ClientPost, reply: Reply): void;
  call(requests: readonly Message[], answer: SessionAnswer): void;
}

/**
 * What the session of a group adds to the way from its clients to the server (docs/decisions/0027): several users take
 * turns, listeners share subscriptions, rounds of input are taken once, and the server's log messages are asked for.
 */
export class GroupInbound {
  readonly #session: SessionCore;
  readonly #link: ServerLink;
  readonly #way: InboundWay;
  readonly #leases: SubscriptionLeases;
  /** Set for a group whose clients accept server requests. */
  readonly #gate: InputGate | undefined;
  /** The digests of the rounds of input that the session has received, by name. Undefined for none. */
  #rounds: BoundedMap<string, string> | undefined;
  /** True once a call has named its user: until then, all calls are of one user. */
  #hasUsers = false;
  /** True once this owner has asked the server for its log messages. */
  #hasRequestedLogs = false;

  constructor(session: SessionCore, link: ServerLink, outbound: Outbound, way: InboundWay) {
    const { client, calls, limits } = session;
    this.#session = session;
    this.#link = link;
    this.#way = way;
    this.#leases = new SubscriptionLeases(client, (request) => way.call([request], discardingAnswer));
    calls.route = new Route(
      calls,
      (call) => call,
      () => !this.#hasUsers,
    );
    calls.onTaken = (call) => this.#handleTaken(call);
    if (client.hasRoots)
      session.earlyRoots = new EarlyRoots(
        calls,
        (onOver) => way.call([pingRequest()], new GatewayAnswer(onOver)),
        (request, call) => outbound.ask(request, call),
      );
    if (!client.acceptsServerRequests) return;
    this.#gate = new InputGate(calls, limits.requestIdleMs, (post, reply) => way.post(post, reply));
  }

  /** True if a post goes on to the server now. Otherwise it waits, or is answered here. */
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

  /** The call with this id. Nobody's call is taken for another one. */
  callOf(id: RequestId): Call | undefined {
    const found = this.#session.calls.ofClient(id);
    return found.length === 1 ? found[0] : undefined;
  }

  /** Notes the user of a call: one of this owner, or any of an earlier one. */
  noteUser(user: Principal = formerUser): void {
    this.#hasUsers = true;
    this.#session.calls.route?.users.note(user);
  }

  /** Ends what listeners have not renewed. */
  endExpired(): void {
    this.#leases.endExpired();
  }

  /**
   * The calls with a question that nobody will answer: the instance that read them was lost before it could give its
   * client a request state. With `share: all`, other clients wait for the end of such a call.
   * @param isRead true if a connection follows the stream
   */
  abandoned(isRead: (stream: number) => boolean): readonly Call[] {
    const { calls, limits } = this.#session;
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

  /** The session ends. Requests that wait here have not reached its server. */
  close(): void {
    const { endReason } = this.#session;
    const isLeft = endReason !== undefined && isLeaving(endReason);
    // This instance has no time left to open the next session, or to wait for another instance.
    this.#gate?.close(isLeft ? 'draining' : 'unknown_session');
    this.#session.earlyRoots?.close();
  }

  /** A call is over. No client can answer the questions that the server has asked for it. */
  #handleTaken(call: Call): void {
    const { serverRequests, earlyRoots, endReason } = this.#session;
    if (endReason !== undefined) return; // the next owner of the session may go on with the questions
    const refused = serverRequests.refuseFor(call, (id) => earlyRoots?.isAsked(id) === true);
    for (const refusal of refused) this.#link.send(refusal);
    earlyRoots?.noteTaken(call);
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
   * A server sends only the log messages that a client has asked for. They are then filtered by request. A server that
   * does not declare `logging` may send some all the same, and knows no level.
   */
  #requestLogs(): void {
    const { client, handshake } = this.#session;
    if (this.#hasRequestedLogs || client.hasLogLevel) return;
    this.#hasRequestedLogs = true;
    if (!Object.hasOwn(Object(handshake?.capabilities), 'logging')) return;
    this.#way.call([logLevelRequest()], discardingAnswer);
  }
}
