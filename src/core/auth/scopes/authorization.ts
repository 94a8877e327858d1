// src/core/auth/scopes: the scopes that requests need, and the challenges for identities that lack some.
import type { IncomingMessage } from 'node:http';
import { pathOf } from '../../protocol/http/request-header.ts';
import type { Message } from '../../protocol/message/message.ts';
import { challengeHeader } from '../challenges.ts';
import { type Authenticate, type Challenge, type Identity, isChallenge } from '../identity.ts';
import type { MayCall } from './filter-tools.ts';
import { requestedScope } from './scope-names.ts';
import type { ScopeRules } from './scope-rules.ts';

/** The rules of a server, and the URLs that its challenges name. */
export interface AuthorizationOptions {
  readonly rules: ScopeRules;
  /** The metadata URL of each endpoint, by path; empty if clients do not get tokens through OAuth discovery. */
  readonly resourceMetadata: ReadonlyMap<string, string>;
  /** The text that clients put before the names of scopes; see `requestedScope`. */
  readonly scopePrefix?: string | undefined;
  /** True if lists contain only the tools that the client may call. */
  readonly filtersLists?: boolean;
}

/** Decides what identities may do at one server, and makes the challenges for those that may not. */
export class Authorization {
  readonly #rules: ScopeRules;
  readonly #resourceMetadata: ReadonlyMap<string, string>;
  readonly #scopePrefix: string | undefined;
  readonly #filtersLists: boolean;

  constructor({ rules, resourceMetadata, scopePrefix, filtersLists = false }: AuthorizationOptions) {
    this.#filtersLists = filtersLists && rules.hasToolRules;
    this.#rules = rules;
    this.#resourceMetadata = resourceMetadata;
    this.#scopePrefix = scopePrefix;
  }

  /**
   * Returns the parameters of a challenge beside the error: the needed scopes, and the URL of the resource's metadata
   * (RFC 9728, section 5.1). Neither a scope (RFC 6749, section 3.3) nor a URL can contain a quotation mark.
   */
  parametersFor(
    { url = '' }: Pick<IncomingMessage, 'url'>,
    scopes: readonly string[] = this.#requested(this.#rules.always),
  ): readonly string[] {
    const metadata = this.#resourceMetadata.get(pathOf(url));
    return [
      ...(scopes.length === 0 ? [] : [`scope="${scopes.join(' ')}"`]),
      ...(metadata === undefined ? [] : [`resource_metadata="${metadata}"`]),
    ];
  }

  /** Returns the scopes that the messages of one POST need together. */
  neededBy(messages: readonly Message[]): readonly string[] {
    return this.#rules.neededBy(messages);
  }

  /**
   * Returns the scopes that a challenge asks for: those needed, plus those that the identity has of this server's
   * scopes. So a client that requests exactly these scopes loses none (2025-11-25, basic/authorization, "Runtime
   * Insufficient Scope Errors", the recommended approach; 2026-07-28 leaves it to the server). The names are those
   * that clients request.
   */
  requestedScopes({ scopes }: Identity, needed: readonly string[]): readonly string[] {
    return this.#requested(this.#rules.all.filter((scope) => needed.includes(scope) || scopes?.has(scope) === true));
  }

  #requested(scopes: readonly string[]): readonly string[] {
    return scopes.map((scope) => requestedScope(scope, this.#scopePrefix));
  }

  /** Makes the challenge for an identity that lacks some of these scopes. */
  challengeTo(identity: Identity, needed: readonly string[], incoming: Pick<IncomingMessage, 'url'>): Challenge {
    const parameters = this.parametersFor(incoming, this.requestedScopes(identity, needed));
    const scheme = isBoundToKey(identity) ? 'DPoP' : 'Bearer';
    const wwwAuthenticate = challengeHeader('insufficient_scope', parameters, scheme);
    return { reason: 'insufficient_scope', wwwAuthenticate };
  }

  /** Returns the filter of this client's lists of tools; undefined if the client sees all tools. */
  listFilter(identity: Identity): MayCall | undefined {
    if (!this.#filtersLists || identity.scopes === undefined) return undefined;
    return (tool) => hasAllScopes(identity, this.#rules.neededByTool(tool));
  }

  /** Wraps authentication so that an identity without the scopes of every request gets a challenge. */
  guard(authenticate: Authenticate): Authenticate {
    const { always } = this.#rules;
    if (always.length === 0) return authenticate;
    const checkScopes = (outcome: Identity | Challenge, incoming: IncomingMessage): Identity | Challenge =>
      isChallenge(outcome) || hasAllScopes(outcome, always) ? outcome : this.challengeTo(outcome, always, incoming);
    return (incoming) => {
      const outcome = authenticate(incoming);
      return outcome instanceof Promise
        ? outcome.then((resolved) => checkScopes(resolved, incoming))
        : checkScopes(outcome, incoming);
    };
  }
}

/** True for the bearer of a token that needs DPoP proofs (RFC 9449, section 6.1). */
function isBoundToKey({ claims: { cnf } }: Identity): boolean {
  return typeof cnf === 'object' && cnf !== null && 'jkt' in cnf;
}

/** True if an identity has all of these scopes, or allows everything. */
export const hasAllScopes = ({ scopes }: Pick<Identity, 'scopes'>, needed: readonly string[]): boolean =>
  scopes === undefined || needed.every((scope) => scopes.has(scope));
