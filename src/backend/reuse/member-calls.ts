import type { RequestId } from '../../protocol/faults.ts';
import { RequestNumbers } from '../../protocol/ids/own-ids.ts';
import type { Message } from '../../protocol/message/message.ts';
import { idsOf, type RenumberedIds, renumber } from '../../protocol/modern/renumber.ts';
import { BoundedMap } from '../../util/bounded-map.ts';
import type { MemberCall, ProcessMember } from './process-member.ts';
import { readSubscription } from './process-settings.ts';

/** How many progress tokens of answered requests are remembered (P8): servers report progress late. */
const maxLateTokens = 64;

/** The sender of a request whose token the gateway replaced. */
interface TokenOwner extends RenumberedIds {
  readonly member: ProcessMember;
}

/** The requests that the server of a process has not answered, by their ids at the server. */
export class MemberCalls {
  readonly byId = new Map<RequestId, MemberCall>();
  readonly numbers = new RequestNumbers();
  #hasRenumbered = false;
  /** The requests of members that have left. */
  readonly #abandoned = new Set<RequestId>();
  /** Progress tokens of answered requests, the oldest first. */
  readonly #lateTokens = new BoundedMap<RequestId, TokenOwner>(maxLateTokens);

  get size(): number {
    return this.byId.size;
  }

  /** True once a request has had a number. The server can name it at any time, even long after the request. */
  get hasRenumbered(): boolean {
    return this.#hasRenumbered;
  }

  /** True while the server may write for a member that has left. */
  get hasAbandoned(): boolean {
    return this.#abandoned.size > 0;
  }

  /** Adds a request. Returns the request as the server gets it. */
  add(member: ProcessMember, request: Message): Message {
    const { id, progressToken, method = '' } = request;
    const clientId = id as RequestId;
    const isTaken = RequestNumbers.mayBe(clientId) || RequestNumbers.mayBe(progressToken) || this.byId.has(clientId);
    const isUnchanged = member.keepsIds && !isTaken;
    const renumbered = isUnchanged ? undefined : renumber(request, this.numbers.next());
    if (renumbered !== undefined) this.#hasRenumbered = true;
    const sent = renumbered?.request ?? request;
    const subscription = readSubscription(request);
    this.byId.set(sent.id as RequestId, {
      member,
      method,
      clientId,
      subscription,
      graceTimer: undefined,
      renumbered: renumbered && idsOf(renumbered),
    });
    return sent;
  }

  take(id: RequestId): MemberCall | undefined {
    const call = this.byId.get(id);
    if (call === undefined) return undefined;
    this.byId.delete(id);
    clearTimeout(call.graceTimer);
    this.#abandoned.delete(id);
    return call;
  }

  /** As `take`, for a request that the server has answered. Its progress may still arrive. */
  settle(id: RequestId): MemberCall | undefined {
    const call = this.take(id);
    if (call?.renumbered?.tokenText === undefined) return call;
    this.#lateTokens.set(id, { member: call.member, ...call.renumbered });
    return call;
  }

  /** The sender of the request with this progress token, which the gateway gave. */
  ownerOf(token: RequestId): TokenOwner | undefined {
    const call = this.byId.get(token);
    return call?.renumbered ? { member: call.member, ...call.renumbered } : this.#lateTokens.get(token);
  }

  /** The request that a member sent with this id. Requests of other members do not exist for it (P11). */
  openOf(member: ProcessMember, clientId: RequestId): readonly [RequestId, MemberCall] | undefined {
    return this.of(member).find(([, call]) => call.clientId === clientId);
  }

  /** The requests of a member, with their ids at the server. */
  of(member: ProcessMember): [RequestId, MemberCall][] {
    return [...this.byId].filter(([, call]) => call.member === member);
  }

  /** A member has left. Its requests stay until the server no longer writes about them. */
  abandon(member: ProcessMember): void {
    for (const [id] of this.of(member)) this.#abandoned.add(id);
  }

  /** Stops all timers. */
  clearTimers(): void {
    for (const { graceTimer } of this.byId.values()) clearTimeout(graceTimer);
  }
}
