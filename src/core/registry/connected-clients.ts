import type { Reason } from '../protocol/faults.ts';
import type { Principal } from '../protocol/principal.ts';
import type { Quotas } from '../quota/quotas.ts';
import { faultAnswer, type Reply } from '../reply/reply.ts';
import type { Server } from '../server/server.ts';
import type { SessionLookup } from '../session/lookup.ts';
import { type ClientPost, postId, type SessionHandle } from '../session/session-handle.ts';
import type { SessionCluster } from './session-cluster.ts';

/** A client whose connection this instance holds. Its POSTs may reach any instance. */
export interface ConnectedClient {
  readonly server: Server;
  /** @param version the revision that the request names, if any */
  post(post: ClientPost, reply: Reply, version?: string): void;
  /** Ends the connection of a client that has no session: this instance stops. */
  endIfWaiting(): void;
}

/**
 * The clients whose connections this instance holds, by key, while their messages come beside these connections
 * (docs/decisions/0195). A POST is passed to the instance that holds the connection.
 */
export class ConnectedClients {
  readonly #quotas: Quotas;
  readonly #maxWaiting: number;
  readonly #cluster: SessionCluster | undefined;
  readonly #clients = new Map<string, ConnectedClient>();
  #waiting = 0;
  #isClosed = false;

  /**
   * @param maxWaiting how many clients may be connected without a session at once (P8)
   * @param cluster undefined if there is no other instance
   */
  constructor(quotas: Quotas, maxWaiting: number, cluster: SessionCluster | undefined) {
    this.#quotas = quotas;
    this.#maxWaiting = maxWaiting;
    this.#cluster = cluster;
  }

  /** Admits a client that has no session yet. Returns the reason if it is refused, or a function that ends its wait. */
  admit(principal: Principal): Reason | (() => void) {
    if (this.#isClosed) return 'draining';
    if (this.#waiting >= this.#maxWaiting) return 'too_many_sessions';
    const endWaiting = this.#quotas.admitWaiting(principal);
    if (typeof endWaiting === 'string') return endWaiting;
    this.#waiting += 1;
    return () => {
      this.#waiting -= 1;
      endWaiting();
    };
  }

  /**
   * This instance holds the connection of a client until `release`. Resolves to false if the other instances cannot learn
   * it now; undefined if there is none.
   */
  hold(key: string, client: ConnectedClient): Promise<boolean> | undefined {
    this.#clients.set(key, client);
    return this.#cluster?.homes.keep(homeOfConnection(key));
  }

  release(key: string): void {
    this.#clients.delete(key);
    this.#cluster?.homes.drop(homeOfConnection(key));
  }

  /** Passes on what a client has posted. */
  post(lookup: SessionLookup, post: ClientPost, reply: Reply): void {
    const { key, server, version } = lookup;
    const client = this.#clients.get(key);
    if (client?.server.name === server.name) client.post(post, reply, version);
    else if (client === undefined && this.#cluster !== undefined)
      this.#cluster.requests.postToHome(homeOfConnection(key), lookup, post, reply);
    else reply.answer(faultAnswer('unknown_session', postId(post)));
  }

  /** The client with this key, for a POST that another instance has passed on; undefined if it is not here. */
  handleOf(key: string): SessionHandle | undefined {
    const client = this.#clients.get(key);
    return (
      client && {
        post: (post, reply) => client.post(post, reply),
        listen: (_, reply) => reply.answer(faultAnswer('unknown_session', null)),
        remove: (reply) => reply.answer(faultAnswer('unknown_session', null)),
      }
    );
  }

  /** Ends the connections of clients without a session, and takes no further client. */
  close(): void {
    this.#isClosed = true;
    for (const client of this.#clients.values()) client.endIfWaiting();
  }
}

/** What names the instance that holds the connection of a client. */
const homeOfConnection = (key: string): readonly string[] => ['sse', key];
