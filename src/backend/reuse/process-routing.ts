import type { RequestId } from '../../protocol/faults.ts';
import { scalarAt } from '../../protocol/json/splice.ts';
import type { Message } from '../../protocol/message/message.ts';
import { methodOf } from '../../protocol/methods/methods.ts';
import { isWanted, readLogLevel } from '../../protocol/modern/log-levels.ts';
import { BoundedMap, budgetOfTexts } from '../../util/bounded-map.ts';
import type { MemberCall, ProcessMember } from './process-member.ts';

/** How many URL elicitations are remembered until the server reports their end (P8). */
const maxElicitations = 64;

/**
 * Finds the sessions that a message belongs to, if several sessions use a process at the same time, or if the server may
 * still write for a session that has left (P2, P11). A message without a request goes to the only session with a request
 * in flight. If there are several, it goes to nobody.
 */
export class ProcessRouting {
  readonly #members: ReadonlySet<ProcessMember>;
  readonly #calls: ReadonlyMap<RequestId, MemberCall>;
  /** The members that got a URL elicitation, by its id, the oldest first. */
  readonly #elicitations = new BoundedMap<string, ProcessMember>(maxElicitations, budgetOfTexts(64 * 1024, 1024));

  constructor(members: ReadonlySet<ProcessMember>, calls: ReadonlyMap<RequestId, MemberCall>) {
    this.#members = members;
    this.#calls = calls;
  }

  /** The member that a request from the server asks; undefined if it cannot be known. */
  memberAsked(request: Message): ProcessMember | undefined {
    const asking = this.#onlyMember(({ method }) => methodOf(method).mayAsk);
    const member = asking === undefined ? this.#onlyMember(() => true) : asking;
    if (member && request.method === 'elicitation/create') this.#rememberElicitation(request, member);
    return member ?? undefined;
  }

  /** The members that get a notification that names no request. */
  membersFor(notification: Message): readonly ProcessMember[] {
    const { method, text } = notification;
    if (methodOf(method).changedLists !== undefined) return [...this.#members];
    if (method === 'notifications/resources/updated') return this.#subscribers(scalarAt(text, ['params', 'uri']));
    const elicitation = method === 'notifications/elicitation/complete' && scalarAt(text, ['params', 'elicitationId']);
    const member = typeof elicitation === 'string' ? this.#elicitations.get(elicitation) : this.#onlyMember(() => true);
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

  #rememberElicitation({ text }: Message, member: ProcessMember): void {
    const id = scalarAt(text, ['params', 'elicitationId']);
    if (typeof id !== 'string') return;
    this.#elicitations.set(id, member);
  }
}
