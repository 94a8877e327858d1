import type { BearerToken } from '../../../core/auth/bearer-token.ts';
import type { SendUpstream, UpstreamAnswer } from '../../../core/auth/upstream-request.ts';
import { readChallenge } from '../../../core/protocol/http/upstream-challenge.ts';
import { BoundedMap } from '../../../core/util/bounded-map.ts';
import { TokenFlights } from './token-flights.ts';

/** What the server says about a token. */
export type TokenVerdict =
  | { readonly outcome: 'accepted' }
  | { readonly outcome: 'refused'; readonly status: 401 | 403; readonly challenge: string | undefined }
  /** The server is away, unwell or busy. */
  | { readonly outcome: 'unknown' };

/** Options of the checks. */
export interface TokenCheckOptions {
  readonly url: URL;
  /** The configured transport of the server: a server of HTTP+SSE has only a GET to ask. */
  readonly transport: 'auto' | 'http' | 'sse';
  readonly send: SendUpstream;
  /** Returns the time in milliseconds. */
  now(): number;
}

/**
 * How long a token counts as accepted. A real request that the server refuses ends this earlier. So the limit is only
 * for what the gateway does without the server, such as resuming a stream from its log.
 */
const acceptedMs = 60_000;

/** How long an accepted token lives on while the server does not say anything about it, in milliseconds. */
const staleMs = 300_000;

/** How many accepted tokens are remembered, by their hash. The least recently used one is dropped first (P8). */
const maxAccepted = 4_096;

/** How many checks run at once (P8). Each is one request to the server; anybody can cause one with a new token. */
const maxChecks = 64;

/** A request that every server answers without an effect. The check reads only the status of the answer. */
const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}';

/** The statuses with which a server of HTTP+SSE refuses a POST to the URL of its stream. */
const otherTransport: ReadonlySet<number> = new Set([404, 405]);

const accepted: TokenVerdict = { outcome: 'accepted' };
const unknown: TokenVerdict = { outcome: 'unknown' };

/**
 * Asks a server whether it accepts a token, where clients authorize at the server itself. The server's acceptance is the
 * only proof that there is: the gateway has neither the keys nor the audience of the tokens (docs/decisions/0037).
 */
export class TokenChecks {
  readonly #options: TokenCheckOptions;
  /** When the acceptance of a token ends. The empty key stands for a request without a token. */
  readonly #accepted = new BoundedMap<string, number>(maxAccepted);
  readonly #running = new TokenFlights<TokenVerdict>(maxChecks);

  constructor(options: TokenCheckOptions) {
    this.#options = options;
  }

  /** Checks a token, or whether a request needs one. Answers at once where the answer is known. Never rejects. */
  check(token: BearerToken | undefined): TokenVerdict | Promise<TokenVerdict> {
    const key = token?.sha256 ?? '';
    const until = this.#accepted.get(key);
    if (until !== undefined && this.#options.now() < until) return accepted;
    const running = this.#running.get(key);
    if (running !== undefined) return running;
    // The gateway itself asks whether a token is needed at all.
    const asker = { isKnown: until !== undefined || token === undefined, address: token?.address };
    return this.#running.start(key, asker, () => this.#judge(key, token, until)) ?? this.#unanswered(until);
  }

  async #judge(key: string, token: BearerToken | undefined, until: number | undefined): Promise<TokenVerdict> {
    const verdict = await this.#ask(token).catch(() => unknown);
    if (verdict.outcome === 'accepted') this.#accepted.set(key, this.#options.now() + acceptedMs);
    if (verdict.outcome === 'refused') this.#accepted.delete(key);
    return verdict.outcome === 'unknown' ? this.#unanswered(until) : verdict;
  }

  /** What counts while the server has not answered: its last acceptance, for a limited time. */
  #unanswered(until: number | undefined): TokenVerdict {
    return until !== undefined && this.#options.now() < until + staleMs ? accepted : unknown;
  }

  /** The server has refused a request with this token: the next check asks again. */
  forget(token: BearerToken | undefined): void {
    this.#accepted.delete(token?.sha256 ?? '');
  }

  async #ask(token: BearerToken | undefined): Promise<TokenVerdict> {
    const { url, transport, send } = this.#options;
    const own = token === undefined ? {} : { authorization: `Bearer ${token.text}` };
    const listen = () => send({ method: 'GET', url, headers: { ...own, accept: 'text/event-stream' } });
    if (transport === 'sse') return readVerdict(await listen());
    const headers = { ...own, 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
    const answer = await send({ method: 'POST', url, headers, body: ping });
    const isOther = transport === 'auto' && otherTransport.has(answer.status);
    return readVerdict(isOther ? await listen() : answer);
  }
}

/**
 * Reads the verdict in an answer. Any other refusal than 401 and 403 is about the request, which the server looks at
 * only after the token. With too narrow scopes the token itself is good.
 */
function readVerdict({ status, headers }: UpstreamAnswer): TokenVerdict {
  if (status === 429 || status >= 500) return unknown;
  const found = readChallenge(status, headers);
  if (found === undefined) return accepted;
  const { wwwAuthenticate: challenge } = found;
  if (found.status === 403 && challenge?.includes('insufficient_scope') === true) return accepted;
  return { outcome: 'refused', status: found.status, challenge };
}
