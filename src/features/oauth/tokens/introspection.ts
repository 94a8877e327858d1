import type { JWTPayload } from 'jose';
import type { BearerToken } from '../../../core/auth/bearer-token.ts';
import { printableText } from '../../../core/auth/identity.ts';
import type { RefusalCause } from '../../../core/auth/refusal-causes.ts';
import { detach } from '../../../core/util/boundary.ts';
import { BoundedMap } from '../../../core/util/bounded-map.ts';
import { TimeLimit } from '../../../core/util/timing/time-limit.ts';
import { TokenFlights } from '../upstream/token-flights.ts';
import type { TokenAnswer } from './introspection-endpoint.ts';
import { type ClaimRules, readBearer, readClient, type TokenBearer } from './token-claims.ts';
import { maxTokenLength, notChecked, type TokenFault, type VerifiedToken } from './verify-token.ts';

/** The endpoint that knows which tokens are valid, and the rules for its answers. */
export interface IntrospectionOptions extends ClaimRules {
  /** The issuer of all introspected tokens. */
  readonly issuer: string;
  /** Asks the endpoint about a token. Rejects if there is no usable answer. */
  readonly ask: (token: string) => Promise<TokenAnswer>;
  /** How long an answer is used, in milliseconds. A revoked token remains usable for at most this time. */
  readonly cacheMs: number;
  /** How long tokens that were valid, and their open streams, live on while the endpoint does not answer. In ms. */
  readonly staleMs: number;
  /** Returns the time, in milliseconds since 1970. */
  readonly now: () => number;
  /** Called for the first failure of a series. */
  readonly onFailed: (cause: unknown) => void;
  /** Called for the first success after failures. */
  readonly onRecovered: () => void;
}

/** How many tokens are remembered, each of at most 8 KiB, however many users there are (P8). */
const maxTokens = 4_096;

/** How many requests to the endpoint run at once. Strangers can send any number of invented tokens (P8). */
const maxFlights = 256;

/** How long the bearer of a token that was valid waits for the next answer about it, in milliseconds. */
const maxRecheckMs = 1_000;

/** The longest time for which an invalid token is remembered, in milliseconds. It spares the endpoint repetitions. */
const maxRefusedMs = 10_000;

/** The identity of a token, which a revocation ends. */
type MutableIdentity = { -readonly [K in keyof VerifiedToken['identity']]: VerifiedToken['identity'][K] };

/** A valid token, and the time of the last answer about it. */
interface Active extends VerifiedToken {
  readonly identity: MutableIdentity;
  expiresAtMs: number;
  answeredAtMs: number;
}

/**
 * Checks tokens by asking their issuer (RFC 7662). There is one request for each token at a time, and each answer is
 * used for a short time. A token that could not be checked is not invalid, so its bearer need not log in again.
 */
export class TokenIntrospection {
  readonly #options: IntrospectionOptions;
  readonly #active = new BoundedMap<string, Active>(maxTokens);
  readonly #refused = new BoundedMap<string, { readonly fault: TokenFault; readonly untilMs: number }>(maxTokens);
  readonly #flights = new TokenFlights<VerifiedToken | TokenFault>(maxFlights);
  #isFailing = false;

  constructor(options: IntrospectionOptions) {
    this.#options = options;
  }

  /** Finds the last answer about a token, if it may still be used. */
  find({ sha256 }: BearerToken): VerifiedToken | TokenFault | undefined {
    const nowMs = this.#options.now();
    const active = this.#active.get(sha256);
    if (active !== undefined) return active.isCurrent() && nowMs < active.expiresAtMs ? active : undefined;
    const refused = this.#refused.get(sha256);
    return refused !== undefined && nowMs < refused.untilMs ? refused.fault : undefined;
  }

  /**
   * Asks the issuer about a token. Requests with the same token share one answer. A token that was valid stays valid
   * until the issuer answers, for a limited time. Never rejects.
   * @param signed the claims of the token, if it is a JWT that was verified. The answer adds to them.
   */
  async check(token: BearerToken, signed?: JWTPayload): Promise<VerifiedToken | TokenFault> {
    const asked = this.#askOnce(token, signed);
    const known = this.#active.get(token.sha256);
    if (known === undefined || !this.#isUsable(known)) return asked;
    let limit: TimeLimit | undefined;
    const late = new Promise<TokenFault>((resolve) => {
      limit = new TimeLimit(() => resolve(notChecked), maxRecheckMs);
    });
    const outcome = await Promise.race([asked, late]);
    limit?.clear();
    return outcome === notChecked && this.#isUsable(known) ? known : outcome;
  }

  #askOnce(token: BearerToken, signed: JWTPayload | undefined): Promise<VerifiedToken | TokenFault> {
    const flight = this.#flights.get(token.sha256);
    if (flight !== undefined) return flight;
    if (token.text.length > maxTokenLength)
      return Promise.resolve({ reason: 'credentials_invalid', detail: { why: 'too_long' } });
    const asker = { isKnown: this.#active.has(token.sha256), address: token.address };
    return this.#flights.start(token.sha256, asker, () => this.#ask(token, signed)) ?? Promise.resolve(notChecked);
  }

  /** True if a token may be used although the last answer about it is old. A revocation has ended its identity. */
  #isUsable({ answeredAtMs, expiresAtMs, identity }: Active): boolean {
    const { now, cacheMs, staleMs } = this.#options;
    return identity.expiresAtMs !== 0 && now() < expiresAtMs && now() - answeredAtMs < cacheMs + staleMs;
  }

  async #ask(token: BearerToken, signed: JWTPayload | undefined): Promise<VerifiedToken | TokenFault> {
    const { ask, onFailed, onRecovered, now } = this.#options;
    let answer: TokenAnswer;
    try {
      answer = await ask(token.text);
    } catch (cause) {
      if (!this.#isFailing) onFailed(cause);
      this.#isFailing = true;
      return notChecked;
    }
    if (this.#isFailing) onRecovered();
    this.#isFailing = false;
    const bearer = this.#readBearer(answer, signed);
    const known = this.#active.get(token.sha256);
    if (!('identity' in bearer)) {
      this.#end(known);
      this.#active.delete(token.sha256);
      const untilMs = now() + Math.min(this.#options.cacheMs, maxRefusedMs);
      this.#refused.set(token.sha256, { fault: bearer, untilMs });
      return bearer;
    }
    if (known !== undefined && hasSameRights(known, bearer)) {
      prolong(known, bearer, now());
      this.#active.set(token.sha256, known); // the newest one now
      return known;
    }
    this.#end(known);
    const active = this.#activate(token, bearer, signed);
    this.#active.set(token.sha256, active);
    return active;
  }

  #activate(token: BearerToken, bearer: TokenBearer, signed: JWTPayload | undefined): Active {
    const { cacheMs, staleMs, now } = this.#options;
    /** Asks again for an open stream, whose client sends no further requests with the token. */
    const recheck = (): void => {
      const ageMs = now() - active.answeredAtMs;
      if (ageMs < cacheMs || active.identity.expiresAtMs === 0) return;
      if (ageMs >= cacheMs + staleMs) return this.#end(active);
      detach('background', this.#askOnce(token, signed).then(apply));
    };
    /** Applies a later answer also if this token was forgotten meanwhile, and others have its place. */
    const apply = (outcome: VerifiedToken | TokenFault): void => {
      if (outcome === notChecked) return;
      if ('identity' in outcome && hasSameRights(outcome, active)) prolong(active, outcome, now());
      else this.#end(active);
    };
    const active: Active = {
      ...bearer,
      identity: { ...bearer.identity, recheck },
      answeredAtMs: now(),
      isCurrent: () => now() - active.answeredAtMs < cacheMs,
    };
    return active;
  }

  /** Ends the streams that were opened with a token. */
  #end(active: Active | undefined): void {
    if (active !== undefined) active.identity.expiresAtMs = 0;
  }

  #readBearer(answer: TokenAnswer, signed: JWTPayload | undefined): TokenBearer | TokenFault {
    const { issuer, now } = this.#options;
    const refused = (why: RefusalCause, more: object = {}): TokenFault => ({
      reason: 'credentials_invalid',
      detail: { why, ...more },
    });
    if (!answer.isActive) return refused('inactive');
    const claims: JWTPayload = { ...signed, ...answer.claims };
    if (claims.iss !== undefined && claims.iss !== issuer)
      return refused('iss', { expected: [issuer], seen: printableText(String(claims.iss)) });
    // Some endpoints leave it to the resource server to compare the times.
    if (claims.exp !== undefined && claims.exp * 1_000 + this.#options.clockSkewMs <= now()) return refused('exp');
    const bearer = readBearer(claims, issuer, this.#options);
    if (typeof bearer === 'string') return refused(bearer);
    // RFC 7662 makes `aud` optional. A token without one is only for the client that it was issued to.
    const client = readClient(claims);
    return bearer.audiences.length === 0 && client !== undefined ? { ...bearer, audiences: [client] } : bearer;
  }
}

/** True if a new answer about a token changes nothing for its bearer. */
const hasSameRights = (a: TokenBearer, b: TokenBearer): boolean => rightsOf(a) === rightsOf(b);

const rightsOf = ({ identity, audiences, bound }: TokenBearer): string =>
  JSON.stringify([identity.principal, [...(identity.scopes ?? [])], audiences, bound]);

/** Takes over the expiry from a new answer. Some endpoints compute it anew each time. */
function prolong(active: Active, { identity, expiresAtMs }: TokenBearer, nowMs: number): void {
  active.answeredAtMs = nowMs;
  active.expiresAtMs = expiresAtMs;
  active.identity.expiresAtMs = identity.expiresAtMs;
}
