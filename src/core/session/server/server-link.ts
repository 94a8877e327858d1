import type {
  Backend,
  BackendEnd,
  BackendEvents,
  CloseOptions,
  RequestIds,
  Resume,
  Sent,
} from '../../backend/backend.ts';
import { CookieJar } from '../../backend/cookie-jar.ts';
import { isRefusedConnection, maxRefusedMs } from '../../backend/reconnect-pause.ts';
import { Connection } from '../../backend/starting/connection.ts';
import type { Reason, RequestId } from '../../protocol/faults.ts';
import { canReplace, type Handshake, readHandshake } from '../../protocol/handshake.ts';
import { type ForwardedHeaders, noHeaders } from '../../protocol/http/forwarded-headers.ts';
import { challengeTo, noteChallenge } from '../../protocol/http/upstream-challenge.ts';
import { type Message, readGatewayMessage, requestId } from '../../protocol/message/message.ts';
import { isClientRefused } from '../../server/server.ts';
import { detach } from '../../util/boundary.ts';
import type { ClientState } from '../record/client-state.ts';
import type { SessionCore } from '../session-core.ts';
import type { Restoration } from '../session-events.ts';
import { StateAffinity } from './state-affinity.ts';
import { UnsentMessages } from './unsent.ts';

/**
 * `hibernating`: the backend is ended until the next message for it. `moving`: the session leaves its process for another
 * one as soon as its requests are answered.
 */
export type ServerLinkState = 'unopened' | 'live' | 'hibernating' | 'moving' | 'restoring' | 'closed';

/** What a message has waited for in vain. */
export type UnsentReason = 'server_unreachable' | 'store_unavailable';

/** Receives what the backends of a session report, and decides after a loss. */
export interface ServerEvents extends Required<Omit<BackendEvents, 'onEnd'>> {
  /** The backend has ended by itself. The listener decides whether to `restore` it. */
  onLost(end: BackendEnd): void;
  /** A message has waited too long for the server, or for the store, and is not sent any more. */
  onUnsent(message: Message, reason: UnsentReason): void;
  /** A new backend has replaced the lost one. */
  onRestored(): void;
}

/**
 * The most bytes that a new process may send before it answers `initialize`. A process that sends more counts as not
 * started (P8).
 */
const maxEarlyBytes = 1024 * 1024;

/** The end of a new process that the gateway closed. */
const noAnswer: BackendEnd = { reason: 'failed', detail: 'The server did not send a valid answer to initialize.' };

const nothingToReplay: ReturnType<ClientState['replay']> = { messages: [], ids: new Set() };

/** The pause between two checks whether this instance owns the session. */
const ownerPauseMs = 50;

/** The longest that a client waits for a remote server to come back. Then it gets a fault and can retry. */
const maxWaitMs = 15_000;

/** Some balancers set another cookie with each answer. So long the record waits for more. */
const cookieDelayMs = 250;

/**
 * Connects a session to its server through a series of backends. A lost backend is restored on demand. The server is
 * started again, brought to the client's state, and checked to be the same server. Messages sent meanwhile wait. A fault
 * in the handling of what a backend reports ends the session.
 */
export class ServerLink implements BackendEvents {
  /** Receives what the backends report; set before the first one is opened. */
  events!: ServerEvents;
  /** Counts the attempts to replace a backend. */
  #replacements = 0;
  /** The newest restore. */
  restoration: Restoration = { isWaking: false, losses: 0 };
  readonly #session: SessionCore;
  #backend: Backend | undefined;
  #state: ServerLinkState = 'unopened';
  /** The end of a hibernated backend. The next backend is not started before it. */
  #ending: Promise<void> | undefined;
  /** Undefined until a message has to wait. */
  #unsent: UnsentMessages | undefined;
  /** True while nothing listens at the address of the server. */
  #isRefused = false;
  /** True while messages wait because another instance may own the session. */
  #waitsForOwner = false;
  #isPaused = false;
  readonly #connection: Connection;
  /** Undefined if no request of the session can name a state that it belongs to. */
  readonly #affinity: StateAffinity | undefined;
  /** Undefined until a remote server is opened. */
  #cookies: CookieJar | undefined;
  #cookieTimer: NodeJS.Timeout | undefined;
  #ownerTimer: NodeJS.Timeout | undefined;
  /** The messages that bring the next backend to the client's state. */
  #replay: ReturnType<ClientState['replay']> = nothingToReplay;
  /** True if the first backend of an earlier owner was resumed. The server's session is then the original one. */
  #isStillFirst = false;
  /** True for a process that gets the client's credentials in its environment. */
  readonly #hasEnvironmentCredentials: boolean;
  /** The headers of the client's newest request that had any. Empty while a process has them in its environment. */
  #newestHeaders = noHeaders;
  /** Starts the lost server again, once a request brings the credentials for it. */
  #start: (() => void) | undefined;
  /** Replayed requests that the server has not answered. Their answers go to no client. */
  #replayIds: ReadonlySet<RequestId> = nothingToReplay.ids;

  constructor(session: SessionCore) {
    const { server } = session.parts;
    this.#session = session;
    this.#hasEnvironmentCredentials = server.credentials?.as === 'variables';
    this.#connection = new Connection(server);
    if (server.affinity?.readsMeta === true) this.#affinity = new StateAffinity(session);
  }

  get state(): ServerLinkState {
    return this.#state;
  }

  get pid(): number | undefined {
    return this.#state === 'hibernating' ? undefined : this.#backend?.pid;
  }

  /**
   * Identifies the current backend. It is part of the ids of server requests, so that an answer never reaches the wrong
   * backend. Empty for the first backend of a session, and unique across all instances.
   */
  get incarnation(): string {
    const { epoch, earlier } = this.#session;
    const isAdopted = earlier !== undefined;
    return this.#replacements === 0 && (!isAdopted || this.#isStillFirst) ? '' : `${epoch}-${this.#replacements}`;
  }

  /**
   * Starts the server for a new session, or resumes the server's session of an earlier owner.
   * @param isFirst true if that owner had the first backend of the session; see `incarnation`
   */
  open(resume?: Resume, isFirst = false): void {
    this.#isStillFirst = isFirst;
    this.#state = 'live';
    this.#connection.noteStart();
    this.#backend = this.#openBackend(this, resume);
    this.#forgetHeaders();
  }

  /**
   * Remembers the headers of a client request. A request without any changes nothing, since not every request has to
   * carry them.
   */
  rememberHeaders(headers: ForwardedHeaders): void {
    if (Object.keys(headers).length === 0 || (this.#hasEnvironmentCredentials && this.#state === 'live')) return;
    this.#newestHeaders = headers;
    const start = this.#start;
    this.#start = undefined;
    start?.();
  }

  /**
   * The server was started with the headers. The next start waits for a request that brings them again
   * (docs/decisions/0037).
   */
  #forgetHeaders(): void {
    if (this.#hasEnvironmentCredentials) this.#newestHeaders = noHeaders;
  }

  /**
   * As `Backend.send`; while a backend is being restored the message waits.
   * @param headers of the client request that brought the message. Headers of another request are never used, or
   *   whoever knows a session id could use the client's credentials (docs/decisions/0037). Undefined for a message of the
   *   gateway itself, which carries the newest headers.
   */
  send(message: Message, headers?: ForwardedHeaders): Sent {
    if (this.#state === 'closed') return 'ended';
    const mark = this.#affinity?.moveFor(message);
    const isLive = this.#state === 'live' && !this.#waitsForOwner;
    if (mark !== undefined && isLive) this.#move(mark);
    const goesOn = (isLive && this.#state === 'live') || (this.#state === 'moving' && message.kind !== 'request');
    if (goesOn) {
      const sent = (this.#backend as Backend).send(message, headers ?? this.#newestHeaders);
      if (sent !== 'ended') return sent;
      // The backend is about to report its end. Its replacement gets the message.
    }
    if (this.#state === 'hibernating') {
      if (this.#affinity !== undefined && mark !== undefined) this.#affinity.mark = mark;
      this.restore();
    }
    // headers of a call that is run again
    if (this.#start !== undefined && headers !== undefined) this.rememberHeaders(headers);
    this.#unsent ??= this.#createUnsent();
    if (this.#isRefused) this.#unsent.limitTo(maxRefusedMs);
    return this.#unsent.add({ message, headers }) ? 'sent' : 'full';
  }

  /** Waits for the answers to earlier requests, and then goes on in the process of the state with this mark. */
  #move(mark: string): void {
    this.#state = 'moving';
    const affinity = this.#affinity as StateAffinity;
    affinity.whenIdle(
      ({ id }) => this.#unsent?.hasRequest(id) === true,
      () =>
        this.#session.guard(() => {
          if (this.#state !== 'moving') return;
          affinity.mark = mark;
          this.hibernate(true);
          this.restore();
        }),
    );
  }

  #createUnsent(): UnsentMessages {
    const { limits, parts } = this.#session;
    // A local server is started by the gateway, within a limit of its own, and is given up if it does not start.
    const usualMs = parts.server.isRemote ? maxWaitMs : undefined;
    return new UnsentMessages(limits.maxQueuedBytes / 2, usualMs, (message) =>
      this.#session.guard(() => this.events.onUnsent(message, 'server_unreachable')),
    );
  }

  pause(): void {
    this.#isPaused = true;
    if (this.#state === 'live' || this.#state === 'moving') this.#backend?.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#backend?.resume();
  }

  /**
   * Ends the live backend of an unused session until the next message.
   * @param mayBeKept true if another session of the same client may use the process
   */
  hibernate(mayBeKept = false): void {
    this.#state = 'hibernating';
    const backend = this.#backend;
    if (backend === undefined) return;
    // The backend with its process and pipes is a third of the session's memory, so it is dropped.
    this.#ending = backend.close({ mayBeKept }).then(() => {
      if (this.#backend === backend) this.#backend = undefined;
    });
    detach('session', this.#ending);
  }

  /** Starts the server again to replace a lost backend, also one of another instance. */
  restore(): void {
    const { client } = this.#session;
    const isRetry = this.#state === 'restoring';
    if (!isRetry && this.#state !== 'hibernating' && this.#connection.countLoss()) return this.#endInCrashLoop();
    // Read once for all attempts: later messages of the client wait.
    if (!isRetry) {
      this.#replay = client.replay();
      const isWaking = this.#state === 'hibernating';
      // The backend of an earlier owner was not lost here.
      const isOwnLoss = !isWaking && (this.#session.earlier === undefined || this.#replacements > 0);
      this.restoration = { isWaking, losses: this.restoration.losses + Number(isOwnLoss) };
    }
    this.#state = 'restoring';
    const start = async (): Promise<void> => {
      await this.#ending;
      if (this.#state === 'restoring') this.#connection.afterPause(() => this.#session.guard(() => this.#reopen()));
    };
    if (this.#hasEnvironmentCredentials && this.#newestHeaders === noHeaders)
      this.#start = () => detach('session', start());
    else detach('session', start());
  }

  /** The client knows what the server was doing, so it decides: it opens the next session. */
  #endInCrashLoop(): void {
    this.#state = 'closed';
    this.#session.endFor('crash_loop');
  }

  /** Ends the backend, as `Backend.close`. Waiting messages are dropped. */
  async close(how?: CloseOptions): Promise<void> {
    this.#state = 'closed';
    this.#start = undefined;
    this.#connection.stop();
    clearTimeout(this.#ownerTimer);
    clearTimeout(this.#cookieTimer);
    this.#affinity?.close();
    this.#unsent?.takeAll();
    await Promise.all([this.#ending, this.#backend?.close(how)]);
  }

  /** The cookies that the server has set for the session, here or at an earlier owner. */
  #jar(): CookieJar {
    const { client } = this.#session;
    if (this.#cookies !== undefined) return this.#cookies;
    const jar = new CookieJar(() => {
      client.cookies = jar.state;
      this.#cookieTimer ??= setTimeout(() => {
        this.#cookieTimer = undefined;
        this.#session.amendRecord();
      }, cookieDelayMs).unref();
    });
    jar.restore(client.cookies);
    this.#cookies = jar;
    return jar;
  }

  #openBackend(events: BackendEvents, resume?: Resume): Backend {
    const { parts, holder, name, client } = this.#session;
    const { server, principal, permit } = parts;
    if (server.keepsProcesses !== true || holder === undefined) permit.started(); // otherwise only a process that starts counts
    const { session } = name;
    const { isGroup } = client;
    const affinity = this.#affinity?.mark;
    const cookies = server.isRemote ? this.#jar() : undefined;
    const headers = (): ForwardedHeaders => this.#newestHeaders;
    const options = { headers, principal, session, resume, affinity, holder, isGroup, cookies };
    return server.open(events, options);
  }

  onMessages(messages: readonly Message[], relatedRequests?: RequestIds): void {
    try {
      const own = this.#replayIds.size === 0 ? messages : this.#withoutReplayAnswers(messages);
      if (own.length === 0) return;
      this.#connection.hasWorked = true;
      this.events.onMessages(own, relatedRequests);
    } catch (cause) {
      this.#session.fail(cause);
    }
  }

  onNoise(text: Buffer, more?: number): void {
    this.#session.guard(() => this.events.onNoise(text, more));
  }

  onUnanswered(ids: RequestIds, reason: Reason, isFinal?: boolean): void {
    this.#session.guard(() => this.events.onUnanswered(ids, reason, isFinal));
  }

  onState(state: string): void {
    this.#session.guard(() => this.events.onState(state));
  }

  onEnd(end: BackendEnd): void {
    // A hibernated backend was closed; its session still exists.
    if (this.#state === 'closed' || end.reason === 'closed') return;
    const waiting = (this.#unsent?.takeAll() ?? []).map(({ message, headers = this.#newestHeaders }) => ({
      message,
      headers,
    }));
    const undelivered = [...(end.undelivered ?? []), ...waiting];
    this.#session.guard(() => this.events.onLost({ ...end, undelivered }));
  }

  #reopen(): void {
    const { client, parts } = this.#session;
    this.#replacements += 1;
    const initialize = readGatewayMessage(client.initialize);
    const backend = this.#connection.open((startEvents) => this.#openBackend(startEvents), {
      request: initialize,
      timeoutMs: parts.server.startTimeoutMs,
      maxEarlyBytes,
      events: this,
      onAnswer: ({ text }) => this.#completeRestore(text),
      onFailed: (end) => this.#session.guard(() => this.#retry(end)),
    });
    this.#backend = backend;
    backend.send(initialize, this.#newestHeaders);
  }

  /** The new backend did not start: the next attempt follows. */
  #retry(end: BackendEnd): void {
    if (this.#state !== 'restoring') return;
    const { parts, name } = this.#session;
    if (isClientRefused(end, parts.server)) return this.#awaitToken();
    const isFirst = this.#connection.failedStarts === 0;
    const why = end.reason === 'closed' ? noAnswer : end;
    if (isFirst) parts.telemetry.emit({ type: 'backend-ended', name, end: why, isAtStart: false });
    if (this.#connection.countFailedStart()) return this.#endInCrashLoop();
    this.#isRefused = isRefusedConnection(end.cause);
    if (this.#isRefused) this.#unsent?.limitTo(maxRefusedMs);
    this.restore();
  }

  /**
   * The server has refused the client's token, which has probably expired. The session stays, and its next request
   * brings the token for the next attempt. Requests that wait now get the server's challenge.
   */
  #awaitToken(): void {
    const challenge = challengeTo(this.#newestHeaders);
    this.#start = () => this.restore();
    const requests = (this.#unsent?.takeAll() ?? []).filter(({ message }) => message.kind === 'request');
    for (const { headers } of requests) if (headers && challenge) noteChallenge(headers, challenge);
    const ids = requests.map(({ message }) => requestId(message));
    this.#session.guard(() => this.events.onUnanswered(ids, 'server_unauthorized', true));
  }

  /**
   * The new backend has answered `initialize`: brings it to the state of the lost one. False if it is a different
   * server now.
   */
  #completeRestore(response: Buffer): boolean {
    let isSame = false;
    this.#session.guard(() => {
      isSame = this.#takeReplacement(response);
    });
    return isSame;
  }

  #takeReplacement(response: Buffer): boolean {
    const handshake = readHandshake(response);
    if (handshake === undefined || !canReplace(handshake, this.#session.handshake as Handshake)) {
      this.#state = 'closed';
      this.#session.endFor('server_changed');
      return false;
    }
    this.#isRefused = false;
    this.#state = 'live';
    const { messages, ids } = this.#replay;
    this.#replayIds = ids;
    const backend = this.#backend as Backend;
    for (const message of messages) backend.send(message, this.#newestHeaders);
    this.#sendUnsent(performance.now() + this.#session.limits.storeWaitMs);
    this.#forgetHeaders();
    this.events.onRestored();
    if (this.#isPaused) backend.pause();
    return true;
  }

  /**
   * Passes the waiting messages on once this instance is known to own the session. It may have lost the session while
   * the server started, as after a freeze of this process (P6).
   * @param deadline for that, on the monotonic clock
   */
  #sendUnsent(deadline: number): void {
    const { isOwner } = this.#session.parts;
    if (this.#state !== 'live') return;
    const mayPass = isOwner?.() ?? true;
    this.#waitsForOwner = !mayPass && performance.now() < deadline;
    if (this.#waitsForOwner) {
      this.#ownerTimer = setTimeout(() => this.#session.guard(() => this.#sendUnsent(deadline)), ownerPauseMs);
      return;
    }
    for (const { message, headers } of this.#unsent?.takeAll() ?? []) {
      if (!mayPass) this.events.onUnsent(message, 'store_unavailable');
      else if (this.send(message, headers) === 'full' && message.kind === 'request')
        this.events.onUnanswered([requestId(message)], 'server_busy', true);
    }
  }

  #withoutReplayAnswers(messages: readonly Message[]): readonly Message[] {
    const unanswered = new Set(this.#replayIds);
    const others = messages.filter(({ kind, id }) => !(kind === 'response' && id != null && unanswered.delete(id)));
    this.#replayIds = unanswered;
    return others;
  }
}
