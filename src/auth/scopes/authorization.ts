import type { IncomingMessage } from 'node:http';
import type { Message } from '../../protocol/message/message.ts';
import { challengeHeader } from '../challenge-header.ts';
import { type Authenticate, type Challenge, type Identity, isChallenge } from '../identity.ts';
import type { ScopeRules } from './scope-rules.ts';

/** What there is to be known of a server before somebody may use it. */
export interface AuthorizationOptions {
  readonly rules: ScopeRules;
  /** The URL of the metadata of each of its endpoints, by path; empty where clients get their tokens in another way. */
  readonly resourceMetadata: ReadonlyMap<string, string>;
}

/** What identities may do at one server, and what those are told who may not. */
export class Authorization {
  readonly #rules: ScopeRules;
  readonly #resourceMetadata: ReadonlyMap<string, string>;

  constructor({ rules, resourceMetadata }: AuthorizationOptions) {
    this.#rules = rules;
    this.#resourceMetadata = resourceMetadata;
  }

  /**
   * What challenges to a request say beside the error: what a token needs, and where there are some (RFC 9728, section 5.1).
   * Neither a scope (RFC 6749, section 3.3) nor a URL can hold a quotation mark.
   */
  parametersFor(
    { url = '' }: Pick<IncomingMessage, 'url'>,
    scopes: readonly string[] = this.#rules.always,
  ): readonly string[] {
    const metadata = this.#resourceMetadata.get(url.split('?', 1)[0] as string);
    return [
      ...(scopes.length === 0 ? [] : [`scope="${scopes.join(' ')}"`]),
      ...(metadata === undefined ? [] : [`resource_metadata="${metadata}"`]),
    ];
  }

  /** The scopes that messages need, all sent at once; for the session to remember. */
  neededBy(messages: readonly Message[]): readonly string[] {
    return this.#rules.neededBy(messages);
  }

  /**
   * What an identity should have that lacks some of these scopes: all of them, and what it has of those that this server
   * knows. Clients that ask for no more than they are told keep what they had (2025-11-25, basic/authorization, "Runtime
   * Insufficient Scope Errors", the recommended approach; in 2026-07-28 it is left to the server).
   */
  requestedScopes({ scopes }: Identity, needed: readonly string[]): readonly string[] {
    return this.#rules.all.filter((scope) => needed.includes(scope) || scopes?.has(scope) === true);
  }

  /** The challenge for an identity that lacks some of these scopes. */
  challengeTo(identity: Identity, needed: readonly string[], incoming: Pick<IncomingMessage, 'url'>): Challenge {
    const parameters = this.parametersFor(incoming, this.requestedScopes(identity, needed));
    return { reason: 'insufficient_scope', wwwAuthenticate: challengeHeader('insufficient_scope', parameters) };
  }

  /** Authentication that lets nobody in who lacks what every request needs. */
  guard(authenticate: Authenticate): Authenticate {
    const { always } = this.#rules;
    if (always.length === 0) return authenticate;
    const judge = (outcome: Identity | Challenge, incoming: IncomingMessage): Identity | Challenge =>
      isChallenge(outcome) || hasAllScopes(outcome, always) ? outcome : this.challengeTo(outcome, always, incoming);
    return (incoming) => {
      const outcome = authenticate(incoming);
      return outcome instanceof Promise ? outcome.then((later) => judge(later, incoming)) : judge(outcome, incoming);
    };
  }
}

/** True if an identity allows what needs these scopes. */
export const hasAllScopes = ({ scopes }: Pick<Identity, 'scopes'>, needed: readonly string[]): boolean =>
  scopes === undefined || needed.every((scope) => scopes.has(scope));
