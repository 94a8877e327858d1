import type { RequestId } from '../../protocol/faults.ts';
import { scalarAt } from '../../protocol/json/splice.ts';
import type { Message } from '../../protocol/message/message.ts';
import { methodOf } from '../../protocol/methods/methods.ts';
import { isWanted, readLogLevel } from '../../protocol/modern/log-levels.ts';
import { elicitationComplete, UrlElicitations } from '../../protocol/url-elicitations.ts';
import type { MemberCall, ProcessMember } from './process-member.ts';

/**
 * Finds the sessions that a message belongs to, if several sessions use a process at the same time, or if the server may
 * still write for a session that has left (P2, P11). A message without a request goes to the only session with a request
 * in flight. If there are several, it goes to nobody. Once sessions of several users have used the process, this holds
 * for requests of the server only, which it makes during a call: a notification may be a late one for another user.
 */
export class ProcessRouting {
  readonly #members: ReadonlySet<ProcessMember>;
  readonly #calls: ReadonlyMap<RequestId, MemberCall>;
  /** The URL elicitations that members got. */
  readonly elicitations = new UrlElicitations<ProcessMember>();

  constructor(members: ReadonlySet<ProcessMember>, calls: ReadonlyMap<RequestId, MemberCall>) {
    this.#members = members;
    this.#calls = calls;
  }

  /** The member that a request from the server asks; undefined if it cannot be known. */
  memberAsked(): ProcessMember | undefined {
    const asking = this.#onlyMember(({ method }) => methodOf(method).mayAsk);
    return (asking === undefined ? this.#onlyMember(() => true) : asking) ?? undefined;
  }

  /**
   * The members that get a notification that names no request.
   * @param hasSeveralUsers true if sessions of several users have used the process
   */
  membersFor(notification: Message, hasSeveralUsers: boolean): readonly ProcessMember[] {
    const { method, text } = notification;
    if (methodOf(method).changedLists !== undefined) return [...this.#members];
    if (method === 'notifications/resources/updated') return this.#subscribers(scalarAt(text, ['params', 'uri']));
    const unnamed = (): ProcessMember | null | undefined => (hasSeveralUsers ? null : this.#onlyMember(() => true));
    const member = method === elicitationComplete ? this.elicitations.ownerOf(notification) : unnamed();
    if (member === undefined || member === null || !this.#members.has(member)) return [];
    const level = method === 'notifications/message' ? readLogLevel(member.logLevel) : undefined;
    return level === undefined || isWanted(notification, level) ? [member] : [];
  }

  /** The only member that these calls in flight belong to. Null if there are several, and undefined without a call. */
  #onlyMember(matches: (call: MemberCall) => boolean): ProcessMember | null | undefined {
    let found: ProcessMember | undefined;
    for (const call of this.#calls.values()) {
      if (!matches(call) || call.member === found) continue;
      if (found !== undefined) return null;
      found = call.member;
    }
    return found;
  }

  /** A server may report a part of a resource that the client subscribed to. */
  #subscribers(uri: unknown): readonly ProcessMember[] {
    if (typeof uri !== 'string') return [];
    const members = [...this.#members];
    const exact = members.filter(({ subscriptions }) => subscriptions.has(uri));
    if (exact.length > 0) return exact;
    return members.filter(({ subscriptions }) => [...subscriptions.keys()].some((whole) => uri.startsWith(whole)));
  }
}
