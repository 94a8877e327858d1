import type { RequestIds } from '../backend/backend.ts';
import type { RequestId } from '../protocol/faults.ts';
import { UsersOfProcess } from '../protocol/principal.ts';
import type { BookedCall, CallBook } from './call-book.ts';

/** Why a message has no call: it can be about calls of several owners, or about none. */
export type Unrouted = 'several' | undefined;

/**
 * Finds the call that a message of a shared server is about (P2, P11): by the id or the token that it names; by the request
 * beside which it came, if the transport tells; else the only one that it can be about. A message that may be about calls
 * of two owners is nobody's. Once several users have used the server, so is any notification that names nothing: it may be
 * a late one for another user. A request of the server is made during a call, so it is never late.
 *
 * If all owners are one user, a cancelled call does not count: whatever the server still writes about it is this user's.
 */
export class Route<C extends BookedCall> {
  readonly users = new UsersOfProcess();
  readonly #book: CallBook<C>;
  readonly #ownerOf: (call: C) => unknown;
  /** True while all owners are known to be one user. */
  readonly isOfOneUser: () => boolean;

  /**
   * @param ownerOf returns who gets what the server writes about a call
   * @param isOfOneUser see `isOfOneUser`
   */
  constructor(book: CallBook<C>, ownerOf: (call: C) => unknown, isOfOneUser = (): boolean => false) {
    this.#book = book;
    this.#ownerOf = ownerOf;
    this.isOfOneUser = isOfOneUser;
  }

  /** True if a message came beside another request than it names. Nobody gets it. */
  isForeign(named: RequestId | undefined, relatedRequests: RequestIds | undefined): boolean {
    if (named === undefined || relatedRequests === undefined || relatedRequests.length === 0) return false;
    return !relatedRequests.includes(named);
  }

  /** The newest awaited call beside which a message came; undefined also if the transport does not tell. */
  beside(relatedRequests: RequestIds | undefined): C | undefined {
    return relatedRequests?.map((id) => this.#book.get(id)).findLast((call) => call !== undefined);
  }

  /**
   * The newest call of the only owner that a notification can be for, which names no call.
   * @param mayBe false for calls that the notification cannot be about
   */
  notified(mayBe?: (call: C) => boolean): C | Unrouted {
    return this.users.areSeveral ? 'several' : this.only(mayBe);
  }

  /**
   * The newest call of the only owner whose calls the server can be working on.
   * @param mayBe false for calls that do not count
   */
  only(mayBe: (call: C) => boolean = () => true): C | Unrouted {
    const isOfOneUser = this.isOfOneUser();
    if (this.#book.isInDoubt && !isOfOneUser) return 'several';
    let found: C | undefined;
    for (const call of isOfOneUser ? this.#book.values() : this.#book.speakable()) {
      if (!mayBe(call)) continue;
      if (found !== undefined && this.#ownerOf(found) !== this.#ownerOf(call)) return 'several';
      found = call;
    }
    return found;
  }
}

/** The call of an outcome; undefined if there is none. */
export const routed = <C extends object>(found: C | Unrouted): C | undefined =>
  typeof found === 'object' ? found : undefined;
