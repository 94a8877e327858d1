// The requests of clients that other instances have to answer.

import { setTimeout as delay } from 'node:timers/promises';
import { assumedRevision, sessionRevision } from '../../../core/protocol/known-revisions.ts';
import type { Message } from '../../../core/protocol/message/message.ts';
import type { EventId } from '../../../core/protocol/wire/event-id.ts';
import type { Reply } from '../../../core/reply/reply.ts';
import type { SessionLookup } from '../../../core/session/lookup.ts';
import { type ResumeOutcome, sessionName } from '../../../core/session/session-events.ts';
import type { ClientPost, SessionHandle } from '../../../core/session/session-handle.ts';
import { OtherRecordVersion } from '../../../core/store/session-records.ts';
import { ifUnavailable, StoreUnavailable } from '../../../core/store/store-unavailable.ts';
import { detach } from '../../../core/util/boundary.ts';
import { type ClusterOptions, noticeMs, reportStoreFault } from '../cluster-parts.ts';
import type { Directory } from '../ownership/directory.ts';
import type { Homes } from '../ownership/homes.ts';
import type { PeerCall, PeerListener } from '../peers/peer-request.ts';
import type { ClientOperation } from './client-operation.ts';
import type { ClientReply } from './client-reply.ts';
import {
  type FailedAttempt,
  ForwardedRequest,
  type ForwardingHost,
  type OwnerRoute,
  type SessionLocation,
} from './forwarded-request.ts';
import { replay } from './replay.ts';

/** A GET gets its response head after this time, before its owner is known. */
const earlyStreamMs = 1_000;

/** The pause between two checks whether clients still wait. */
const pauseMs = 50;

/** All requests that this instance forwards. */
export class ForwardedRequests {
  readonly #options: ClusterOptions;
  readonly #directory: Directory;
  readonly #homes: Homes;
  readonly #host: ForwardingHost;
  readonly #requests = new Set<ForwardedRequest>();
  #isClosed = false;

  constructor(options: ClusterOptions, directory: Directory, homes: Homes) {
    this.#options = options;
    this.#directory = directory;
    this.#homes = homes;
    const { limits } = options;
    this.#host = {
      ask: (to, request, body, listener) => options.peers?.ask(to, request, body, listener) ?? askNobody(listener),
      // A lost owner may seem to live for a lease.
      waitMs: Math.max(limits.storeWaitMs, limits.leaseMs + noticeMs),
      earlyStreamMs,
      isClosed: () => this.#isClosed,
    };
  }

  /** The instances that requests wait for. */
  get owners(): readonly string[] {
    return [...this.#requests].map(({ owner }) => owner).filter((owner) => owner !== undefined);
  }

  /** A handle for a session whose owner is not known here. */
  handleOf(lookup: SessionLookup): SessionHandle {
    return {
      post: (post, reply) => this.#forward(lookup, { kind: 'post', ...post }, reply),
      listen: (after, reply) => this.#forward(lookup, { kind: 'listen', after }, reply),
      remove: (reply) => this.#forward(lookup, { kind: 'remove' }, reply),
    };
  }

  /**
   * Opens a session at the instance that is its home, or here if that instance is lost or does not want it.
   * @param open opens the session here
   */
  openAt(home: string, lookup: SessionLookup, initialize: Message, reply: Reply, open: (reply: Reply) => void): void {
    const { server, principal } = lookup;
    const here: SessionHandle = { post: (_, to) => open(to), listen: () => undefined, remove: () => undefined };
    const opens = { server: server.name, digest: server.digest, principal };
    const operation = { kind: 'post', messages: [initialize], isBatch: false, opens } as const;
    this.#run(lookup.key, operation, reply, {
      mayRepeat: true,
      locate: async (failed) => (failed === undefined ? { instance: home, epoch: 0 } : { here }),
    });
  }

  /** Passes a POST to the instance that is the home, where its client is connected. */
  postToHome(home: readonly string[], lookup: SessionLookup, post: ClientPost, reply: Reply): void {
    const directory = this.#directory;
    const locate = async (failed: FailedAttempt | undefined): Promise<SessionLocation> => {
      const instance = failed?.why === 'moved' ? undefined : await this.#homes.find(home).catch(ifUnavailable('later'));
      if (instance === 'later') return 'later';
      if (instance !== undefined) return { instance, epoch: 0 };
      return (await directory.isSettled()) ? { fault: 'unknown_session' } : 'later';
    };
    this.#run(lookup.key, { kind: 'post', ...post }, reply, { mayRepeat: false, locate });
  }

  /** An instance was lost. Requests that wait for it must not wait any longer. */
  ownerLost(instance: string): void {
    for (const request of [...this.#requests]) if (request.owner === instance) request.ownerLost();
  }

  /** Ends the requests that have waited since `since`. See `ForwardedRequest.endUnreachable`. */
  endUnreachable(since: number): void {
    for (const request of [...this.#requests]) request.endUnreachable(since);
  }

  /**
   * Releases the clients (P9). A client with an event id can continue elsewhere and is released at once. The others are
   * released with their answer, or at the deadline.
   */
  async leave(deadline: Promise<void>): Promise<void> {
    await Promise.race([deadline, this.#isQuiet()]);
    for (const request of [...this.#requests]) {
      request.detach();
      request.close();
    }
  }

  /** Stops the lookups of requests that still wait. */
  close(): void {
    this.#isClosed = true;
  }

  #forward(client: SessionLookup, operation: ClientOperation, reply: Reply): void {
    const directory = this.#directory;
    const { limits } = this.#options;
    const lookup = { ...client, forwarded: reply.request.forwarded };
    // A stream would keep this instance from stopping. Its client finds another one by itself.
    const passesOn = operation.kind !== 'listen';
    const { primesStreams } = sessionRevision(client.version ?? assumedRevision);
    this.#run(client.key, operation, reply, {
      mayRepeat: true,
      retryMsOfPriming: primesStreams ? limits.reconnectDelayMs : undefined,
      admit: () => directory.admits(lookup),
      locate: (failed) => directory.locate(lookup, failed, passesOn),
      replay: (after, to) => this.#replay(lookup, after, to),
    });
  }

  /** Runs a request that another instance may have to answer. */
  #run(key: string, operation: ClientOperation, reply: Reply, route: OwnerRoute): void {
    const request = new ForwardedRequest(key, operation, reply, route, this.#host);
    this.#requests.add(request);
    const fail = (cause: unknown): void => {
      // A client that is gone stops the log reads with an abort. Any other failure is reported.
      if (reply.isGone && (cause instanceof StoreUnavailable || isAbort(cause))) return;
      reportStoreFault(this.#options, cause);
      request.fail(cause instanceof OtherRecordVersion ? 'instances_differ' : 'internal');
    };
    detach(
      'cluster',
      request
        .run()
        .catch(fail)
        .finally(() => this.#requests.delete(request)),
    );
  }

  async #replay({ key, server }: SessionLookup, after: EventId, to: ClientReply): Promise<EventId | 'complete'> {
    const { store, limits, telemetry } = this.#options;
    let outcome: ResumeOutcome = 'complete';
    const onWritten = (count: number): void => {
      outcome = 'resumed';
      telemetry.delivered.replayed.add(count);
    };
    const onSlowReader = (): void =>
      telemetry.emit({ type: 'session-client-cut', name: sessionName(key, server.name) });
    const options = { log: store.log, key, primes: this.#directory.primes(key), onWritten, onSlowReader, ...limits };
    const reached = await replay(options, after, to);
    // otherwise the owner continues the stream and reports it
    if (reached === 'complete') telemetry.emit({ type: 'stream-resumed', server: server.name, outcome });
    return reached;
  }

  /** Resolves when no client waits for another instance. */
  async #isQuiet(): Promise<void> {
    while (this.#requests.size > 0 && !this.#isClosed) {
      // Requests still arrive, and are passed on: the stream of one may get its first event id later.
      for (const request of [...this.#requests]) request.detach();
      await delay(pauseMs);
    }
  }
}

const isAbort = (cause: unknown): boolean => cause instanceof Error && cause.name === 'AbortError';

/** Where there can be no other instance, the owner that a record names is lost. */
function askNobody(listener: PeerListener): PeerCall {
  queueMicrotask(() => listener.failed('unsent'));
  return { isSent: false, resume: () => undefined, abort: () => undefined };
}
