import { createHash } from 'node:crypto';
import { NoUpstreamToken, type TokenSubject, type UpstreamTokens } from '../../core/backend/upstream-tokens.ts';
import { detach } from '../../core/util/boundary.ts';
import { BoundedMap } from '../../core/util/bounded-map.ts';
import { backoff } from '../../core/util/timing/backoff.ts';

/** A token that an authorization server has issued. */
export interface IssuedToken {
  readonly token: string;
  /** How long the token is valid, in milliseconds; undefined if the authorization server does not say. */
  readonly lifetimeMs: number | undefined;
}

/** Gets one token. Rejects with `NoUpstreamToken`. */
export type RequestToken = (subject: TokenSubject | undefined) => Promise<IssuedToken>;

/** How many tokens one server's users can have here (P8). The least recently used token is dropped. */
const maxTokens = 10_000;
/** How many tokens of one server are requested at the same time, beyond which requests fail at once (P8). */
const maxFlights = 1_000;
/** No token is used longer than this, whatever its issuer says: a withdrawn token must not live on here. */
const maxLifetimeMs = 60 * 60_000;
/** The lifetime of a token whose issuer names none. */
const defaultLifetimeMs = 60_000;
/** A token is renewed in the last fifth of its lifetime, at most this long before its end. */
const maxRenewAheadMs = 60_000;
/** A token is not used in the last tenth of its lifetime, at most this long: it must still be valid when it arrives. */
const maxUnusedMs = 5_000;
/** After a server has refused a token, another refused one is replaced only after this pause. */
const renewPauseMs = 5_000;

const pauseAfter = backoff({ firstMs: 1_000, maxMs: 30_000, spread: [0.8, 1.2] });

/** The token of the gateway, or of one user's token. A class, since each user has one. */
class TokenEntry {
  token: string | undefined;
  /** From then on the token is renewed in the background, and from `endsAt` on not used. */
  renewAt = 0;
  endsAt = 0;
  flight: Promise<string> | undefined;
  /** Requests fail with this until `retryAt`. */
  failure: NoUpstreamToken | undefined;
  failures = 0;
  retryAt = 0;
  /** When the server last refused a token. */
  refusedAt = Number.NEGATIVE_INFINITY;
}

/**
 * Holds the tokens of one server, and requests them when needed. Concurrent requests share one request for a token, and
 * each user has at most one at a time. A token is renewed while it is still valid, so that no call waits. After a
 * failure, all calls fail in the same way until a pause is over; the pause grows with each failure.
 */
export class HeldTokens implements UpstreamTokens {
  readonly #request: RequestToken;
  readonly #now: () => number;
  readonly #entries = new BoundedMap<string, TokenEntry>(maxTokens);
  /** The keys of the entries, by the object that callers reuse. */
  readonly #keys = new WeakMap<TokenSubject, string>();
  /** The last request for a token of each user, while there is one. */
  readonly #lastFlights = new Map<string, Promise<unknown>>();
  #flights = 0;

  /** @param now returns milliseconds of the monotonic clock */
  constructor(request: RequestToken, now: () => number = () => performance.now()) {
    this.#request = request;
    this.#now = now;
  }

  get(subject: TokenSubject | undefined): string | Promise<string> {
    const entry = this.#entryOf(subject);
    const now = this.#now();
    if (entry.token !== undefined && now < entry.endsAt) {
      if (now >= entry.renewAt && entry.flight === undefined && now >= entry.retryAt)
        // A failure is kept in the entry, and the token is still valid.
        detach('backend', this.#start(entry, subject).then(ignore, ignore));
      return entry.token;
    }
    return this.#obtain(entry, subject);
  }

  async renew(subject: TokenSubject | undefined, refused: string): Promise<string | undefined> {
    const entry = this.#entryOf(subject);
    if (entry.token === refused) {
      const now = this.#now();
      // A token that has expired on its way says nothing about the next one.
      const hasExpired = now >= entry.endsAt;
      if (!hasExpired && now - entry.refusedAt < renewPauseMs) return undefined;
      if (!hasExpired) entry.refusedAt = now;
      entry.token = undefined;
    }
    const token = await this.get(subject);
    return token === refused ? undefined : token;
  }

  /** A hash is the key: the token of a client is not kept. */
  #entryOf(subject: TokenSubject | undefined): TokenEntry {
    const key = subject === undefined ? '' : (this.#keys.get(subject) ?? this.#keyOf(subject));
    const entry = this.#entries.get(key) ?? new TokenEntry();
    this.#entries.set(key, entry); // the newest one now
    return entry;
  }

  #keyOf(subject: TokenSubject): string {
    const key = createHash('sha256').update(subject.token).digest('base64');
    this.#keys.set(subject, key);
    return key;
  }

  #obtain(entry: TokenEntry, subject: TokenSubject | undefined): Promise<string> {
    if (entry.flight !== undefined) return entry.flight;
    if (entry.failure !== undefined && this.#now() < entry.retryAt) return Promise.reject(entry.failure);
    return this.#start(entry, subject);
  }

  #start(entry: TokenEntry, subject: TokenSubject | undefined): Promise<string> {
    if (this.#flights >= maxFlights) {
      const detail = `More than ${maxFlights} token requests are waiting for the authorization server.`;
      return Promise.reject(new NoUpstreamToken('upstream_token_unavailable', detail));
    }
    this.#flights += 1;
    const flight = this.#inTurn(subject, () => this.#fetch(entry, subject)).finally(() => {
      this.#flights -= 1;
      entry.flight = undefined;
    });
    entry.flight = flight;
    return flight;
  }

  /** Runs one request of a user after the other: a user can have several tokens. */
  #inTurn(subject: TokenSubject | undefined, request: () => Promise<string>): Promise<string> {
    const [user = ''] = subject?.user.split('.') ?? [];
    const turn = (this.#lastFlights.get(user) ?? Promise.resolve()).then(request, request);
    this.#lastFlights.set(user, turn);
    const leave = (): void => {
      if (this.#lastFlights.get(user) === turn) this.#lastFlights.delete(user);
    };
    turn.then(leave, leave);
    return turn;
  }

  async #fetch(entry: TokenEntry, subject: TokenSubject | undefined): Promise<string> {
    const startedAt = this.#now();
    try {
      const { token, lifetimeMs = defaultLifetimeMs } = await this.#request(subject);
      const keptMs = Math.min(lifetimeMs, maxLifetimeMs);
      // Counted from the request on: the token may have been issued then.
      entry.renewAt = startedAt + Math.max(keptMs * 0.8, keptMs - maxRenewAheadMs);
      entry.endsAt = startedAt + Math.max(keptMs * 0.9, keptMs - maxUnusedMs);
      entry.token = token;
      entry.failure = undefined;
      entry.failures = 0;
      return token;
    } catch (cause) {
      entry.failure = asNoToken(cause);
      entry.retryAt = this.#now() + pauseAfter(entry.failures);
      entry.failures += 1;
      throw entry.failure;
    }
  }
}

const ignore = (): void => undefined;

const asNoToken = (cause: unknown): NoUpstreamToken =>
  cause instanceof NoUpstreamToken
    ? cause
    : new NoUpstreamToken('upstream_token_unavailable', 'The request for a token failed inside the gateway.');
