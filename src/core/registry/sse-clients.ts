import type { Reason } from '../protocol/faults.ts';
import type { Quotas } from '../quota/quotas.ts';
import { faultAnswer, type Reply } from '../reply/reply.ts';
import type { SessionLookup } from '../session/lookup.ts';
import { type ClientPost, postId, type SessionHandle } from '../session/session-handle.ts';
import { detach } from '../util/boundary.ts';
import type { SessionCluster } from './session-cluster.ts';
import { SseClient, type SseClientOptions } from './sse-client.ts';

/** Options of `SseClients`. */
export interface SseClientsOptions {
  readonly open: SseClientOptions['open'];
  readonly quotas: Quotas;
  /** How many clients may listen without a session at once (P8). */
  readonly maxWaiting: number;
  /** How long a client may listen without a session, beside the time that its server may take to start. */
  readonly openWithinMs: number;
  /** How often a claim is made again. */
  readonly claimEveryMs: number;
  /** Undefined if there is no other instance. */
  readonly cluster: SessionCluster | undefined;
}

/**
 * The clients of HTTP+SSE whose streams this instance holds, by key. A session lives with the stream of its client
 * (docs/decisions/0195). A POST may reach any instance, and is passed to the one that holds the stream.
 */
export class SseClients {
  readonly #options: SseClientsOptions;
  readonly #entries = new Map<string, { readonly client: SseClient; claimedAt: number }>();
  #waiting = 0;
  #isClosed = false;

  constructor(options: SseClientsOptions) {
    this.#options = options;
  }

  /**
   * Takes a client that has asked for its stream. The stream opens as soon as every instance knows who holds it.
   * @returns the reason if the client is refused
   */
  connect(lookup: SessionLookup, reply: Reply): Reason | undefined {
    const { open, quotas, maxWaiting, openWithinMs } = this.#options;
    const { key, server, principal } = lookup;
    if (this.#isClosed) return 'draining';
    if (this.#waiting >= maxWaiting) return 'too_many_sessions';
    const endWaiting = quotas.admitWaiting(principal);
    if (typeof endWaiting === 'string') return endWaiting;
    this.#waiting += 1;
    const client = new SseClient(lookup, reply, {
      open,
      openWithinMs: openWithinMs + server.startTimeoutMs,
      onWaited: () => {
        this.#waiting -= 1;
        endWaiting();
      },
      onLeft: () => this.#entries.delete(key),
    });
    this.#entries.set(key, { client, claimedAt: performance.now() });
    const claimed = this.#claim(key);
    if (claimed === undefined) client.open();
    else
      detach(
        'session',
        claimed.then((isKnown) => (isKnown ? client.open() : client.refuse('store_unavailable'))),
        () => client.refuse('internal'),
      );
    return undefined;
  }

  /** Passes on what a client has posted. */
  post(lookup: SessionLookup, post: ClientPost, reply: Reply): void {
    const client = this.#entries.get(lookup.key)?.client;
    const { cluster } = this.#options;
    if (client?.server.name === lookup.server.name) client.post(post, reply, lookup.version);
    else if (client === undefined && cluster !== undefined)
      cluster.requests.postToHome(homeOfStream(lookup.key), lookup, post, reply);
    else reply.answer(faultAnswer('unknown_session', postId(post)));
  }

  /** The client with this key, for a POST that another instance has passed on; undefined if its stream is not here. */
  handleOf(key: string): SessionHandle | undefined {
    const client = this.#entries.get(key)?.client;
    return (
      client && {
        post: (post, reply) => client.post(post, reply),
        listen: (_, reply) => reply.answer(faultAnswer('unknown_session', null)),
        remove: (reply) => reply.answer(faultAnswer('unknown_session', null)),
      }
    );
  }

  /** Makes all claims again: this instance has another name, or the store may have lost them. */
  claimAll(): void {
    this.#claimOlderThan(0);
  }

  /** Makes the claims again that the store would forget otherwise. */
  renewClaims(): void {
    this.#claimOlderThan(this.#options.claimEveryMs);
  }

  #claimOlderThan(ms: number): void {
    const now = performance.now();
    for (const [key, entry] of this.#entries) {
      if (now - entry.claimedAt < ms) continue;
      entry.claimedAt = now;
      const claimed = this.#claim(key)?.then((isKnown) => {
        if (!isKnown) entry.claimedAt = Number.NEGATIVE_INFINITY; // again at the next opportunity
      });
      detach('session', claimed);
    }
  }

  /**
   * This instance holds the stream of the client with this key. Resolves to false if the others cannot learn it now;
   * undefined if there is none.
   */
  #claim(key: string): Promise<boolean> | undefined {
    const { cluster } = this.#options;
    const claim = async (of: SessionCluster): Promise<boolean> => {
      // Without its lease, the others take this instance for lost.
      if (!of.lease.isHeld && !(await of.isReady())) return false;
      return of.homes.claim(homeOfStream(key), true);
    };
    return cluster && claim(cluster);
  }

  /** Ends the streams of clients without a session, and takes no further client. */
  close(): void {
    this.#isClosed = true;
    for (const { client } of this.#entries.values()) client.endIfWaiting();
  }
}

/** What names the instance that holds the stream of a client. */
const homeOfStream = (key: string): readonly string[] => ['sse', key];
