import type { Backend, BackendEnd, BackendEvents, RequestIds, Resume } from '../../backend/backend.ts';
import { reportListenerFaults } from '../../backend/contain-faults.ts';
import type { Reason } from '../../protocol/faults.ts';
import { canReplace, type Handshake, readHandshake } from '../../protocol/handshake.ts';
import { type ForwardedHeaders, noHeaders } from '../../protocol/http/forwarded-headers.ts';
import type { Message } from '../../protocol/message/message.ts';
import type { Principal } from '../../protocol/principal.ts';
import type { Server } from '../../server/server.ts';
import { detach } from '../../util/boundary.ts';
import { readOneMessage } from '../record/adoption.ts';
import type { ClientState } from '../record/client-state.ts';
import type { Restoration } from '../session-observer.ts';
import { RestartPolicy } from './restart-policy.ts';
import { UnsentMessages } from './unsent.ts';
import { removeResponses } from './without-answers.ts';

/** `hibernating`: it has let go of its backend until there is something to be sent to it. */
export type BackendSupervisorState = 'unopened' | 'live' | 'hibernating' | 'restoring' | 'closed';

/** What an upstream needs of its session. */
export interface BackendSupervisorOptions {
  readonly server: Server;
  /** Whose the session is. */
  readonly principal?: Principal;
  /** The session's epoch, and whether it had owners before. */
  readonly epoch: number;
  readonly isAdopted: boolean;
  /** Messages that wait for a backend to be restored have no more bytes than this in all (P8). */
  readonly maxQueuedBytes: number;
  /** A backend is opened. */
  onStart(): void;
  /** Lines of the server, in order; `of` as `BackendEvents.onMessages` has it. */
  onLines(lines: readonly Buffer[], of?: RequestIds): void;
  /** The server will not answer these requests; see `BackendEvents.onUnanswered`. */
  onUnanswered(ids: RequestIds, reason: Reason, isFinal?: boolean): void;
  /** Where the backend stands; see `BackendEvents.onState`. */
  onState(state: string): void;
  /** Something is to be sent to a server that hibernates: the listener restores it. */
  onNeeded(): void;
  /** The backend has ended by itself. What becomes of the session is the listener's to say: `restore`, or nothing. */
  onLost(end: BackendEnd): void;
  /** The first try to restore failed, for this reason. */
  onAway(end: BackendEnd): void;
  /** A message has waited too long for the server to come back: it is not sent any more. */
  onUnsent(message: Message | undefined): void;
  /** A new backend stands where the lost one was. */
  onRestored(): void;
  /** What a backend said, or a timer brought, could not be handled: the session cannot go on. */
  onFault(cause: unknown): void;
  onGivenUp(why: 'crash_loop' | 'server_changed'): void;
}

/** What a new process may say before it answers `initialize`; one that says more has not started (P8). */
const maxEarlyBytes = 1024 * 1024;

const nothingToReplay: ReturnType<ClientState['replay']> = { texts: [], ids: new Set() };

/** A client waits no longer than this for a remote server to be back: it is told, and can ask again. */
const maxWaitMs = 15_000;

/**
 * A session's connection to its server over the backends that it has in turn. A lost backend is restored on demand: the
 * server is started again, told what its client had told the lost one, and checked to be the same; messages sent
 * meanwhile wait.
 */
export class BackendSupervisor {
  /** Counts the backends that replaced another one, each try. */
  #replacements = 0;
  /** Of the newest restore. */
  restoration: Restoration = { isWaking: false, losses: 0 };
  readonly #options: BackendSupervisorOptions;
  #backend: Backend | undefined;
  #state: BackendSupervisorState = 'unopened';
  /** The backend that hibernation ends; a later one is not started before it is gone. */
  #ending: Promise<void> = Promise.resolve();
  readonly #waiting: UnsentMessages;
  #isPaused = false;
  readonly #restarts: RestartPolicy;
  #timer: NodeJS.Timeout | undefined;
  /** What the next backend is told, and how many requests of the gateway's own that took so far. */
  #replay: ReturnType<ClientState['replay']> = nothingToReplay;
  #replayed = 0;
  /** An earlier owner's first backend is gone on with: the server's session is the same as from the start. */
  #isStillFirst = false;
  /** True for a process that has what its client brings in its environment. */
  readonly #isStartedWithThem: boolean;
  /** Of the client's newest request that had any. A process that is started with them keeps them itself: then there are none. */
  #newestHeaders = noHeaders;
  /** Starts the lost server again, once a request brings what it is started with. */
  #start: (() => void) | undefined;
  /** Requests of the replay that the server has not answered; the answers are nobody else's. */
  #replayIds: ReadonlySet<string> = nothingToReplay.ids;

  constructor(options: BackendSupervisorOptions) {
    this.#options = options;
    this.#isStartedWithThem = options.server.credentials?.as === 'variables';
    this.#restarts = new RestartPolicy(options.server.isRemote);
    this.#waiting = new UnsentMessages({
      maxBytes: options.maxQueuedBytes,
      // A local one is started by the gateway, has its own limit for that, and is given up if it does not start.
      maxMs: options.server.isRemote ? maxWaitMs : undefined,
      onExpired: (message) => this.#guard(() => options.onUnsent(readOneMessage(message))),
    });
  }

  get state(): BackendSupervisorState {
    return this.#state;
  }

  get pid(): number | undefined {
    return this.#state === 'hibernating' ? undefined : this.#backend?.pid;
  }

  /**
   * Which backend speaks; requests of the server are known by it, so that an answer never reaches the wrong one. Empty for
   * the first one of a session, unique among all that the session has on any instance.
   */
  get incarnation(): string {
    const { epoch, isAdopted } = this.#options;
    return this.#replacements === 0 && (!isAdopted || this.#isStillFirst) ? '' : `${epoch}-${this.#replacements}`;
  }

  /** Starts the server for a new session. */
  open(): void {
    this.#begin();
  }

  /** Goes on with the server's session that an earlier owner had; `isFirst` as `incarnation` has it. */
  attach(resume: Resume, isFirst: boolean): void {
    this.#isStillFirst = isFirst;
    this.#begin(resume);
  }

  #begin(resume?: Resume): void {
    const { onLines, onUnanswered, onState } = this.#options;
    this.#state = 'live';
    const events = { onMessages: onLines, onUnanswered, onState, onEnd: (end: BackendEnd) => this.#lost(end) };
    this.#backend = this.#openBackend(events, resume);
    this.#forget();
  }

  /** A request of the client brought these. One that brought none changes nothing: not every request of a client may. */
  rememberHeaders(headers: ForwardedHeaders): void {
    if (Object.keys(headers).length === 0 || (this.#isStartedWithThem && this.#state === 'live')) return;
    this.#newestHeaders = headers;
    const start = this.#start;
    this.#start = undefined;
    start?.();
  }

  /** The server has what it was started with; the next one waits for a request that brings it (docs/decisions/0037). */
  #forget(): void {
    if (this.#isStartedWithThem) this.#newestHeaders = noHeaders;
  }

  /**
   * As `Backend.send`; while a backend is being restored the message waits.
   * @param headers of the client's request that brought the message, and none of another one: whoever knows the id of a
   *   session could else speak with the client's credentials (docs/decisions/0020). Undefined for a message of the gateway
   *   itself, which goes with the newest
   */
  send(message: Buffer, headers?: ForwardedHeaders): 'sent' | 'full' | 'ended' {
    if (this.#state === 'closed') return 'ended';
    if (this.#state === 'live') return (this.#backend as Backend).send(message, headers ?? this.#newestHeaders);
    if (this.#state === 'hibernating') this.#options.onNeeded();
    if (this.#start !== undefined && headers !== undefined) this.rememberHeaders(headers); // of a call that is run again
    return this.#waiting.add({ message, headers }) ? 'sent' : 'full';
  }

  pause(): void {
    this.#isPaused = true;
    if (this.#state === 'live') this.#backend?.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#backend?.resume();
  }

  /** Ends the backend of a session that is not used, if it is live, until something is to be sent to it. */
  hibernate(): void {
    this.#state = 'hibernating';
    const backend = this.#backend;
    this.#ending = backend?.close() ?? this.#ending;
    // With its process and pipes it is a third of the session, for as long as that sleeps.
    detach(
      'session',
      this.#ending.then(() => {
        if (this.#backend === backend) this.#backend = undefined;
      }),
    );
  }

  /** Starts the server again in place of the lost backend, also of one that another instance had. */
  restore(client: ClientState, handshake: Handshake): void {
    const { server, epoch, onGivenUp } = this.#options;
    const isRetry = this.#state === 'restoring';
    const isLoss = this.#state !== 'hibernating' && !(isRetry && server.isRemote);
    if (isLoss && this.#restarts.isOneTooMany()) {
      this.#state = 'closed';
      onGivenUp('crash_loop');
      return;
    }
    // Once for all tries: what the client says from now on waits.
    if (!isRetry) {
      this.#replay = client.replay(() => `mcp-gangway-replay-${epoch}-${++this.#replayed}`);
      const isWaking = this.#state === 'hibernating';
      this.restoration = { isWaking, losses: this.restoration.losses + Number(!isWaking) };
    }
    this.#state = 'restoring';
    const start = async (): Promise<void> => {
      await this.#ending;
      if (this.#state === 'restoring')
        this.#timer = setTimeout(() => this.#guard(() => this.#reopen(client, handshake)), this.#restarts.pauseMs);
    };
    if (this.#isStartedWithThem && this.#newestHeaders === noHeaders) this.#start = () => detach('session', start());
    else detach('session', start());
  }

  /** Ends the backend, `isForGood` as `Backend.close` has it. What waits for it is dropped. */
  async close(isForGood = false): Promise<void> {
    this.#state = 'closed';
    this.#start = undefined;
    clearTimeout(this.#timer);
    this.#waiting.takeAll();
    await Promise.all([this.#ending, this.#backend?.close({ isForGood })]);
  }

  #guard(work: () => void): void {
    try {
      work();
    } catch (cause) {
      this.#options.onFault(cause);
    }
  }

  #openBackend(events: BackendEvents, resume?: Resume): Backend {
    this.#options.onStart();
    const { server, principal, onFault } = this.#options;
    return server.open(reportListenerFaults(events, onFault), {
      headers: () => this.#newestHeaders,
      principal,
      resume,
    });
  }

  #lost(end: BackendEnd): void {
    // One that hibernates was closed; its session is still there.
    if (this.#state !== 'closed' && end.reason !== 'closed') this.#options.onLost(end);
  }

  #reopen(client: ClientState, handshake: Handshake): void {
    const { server, onLines, onUnanswered, onState } = this.#options;
    this.#replacements += 1;
    const initializeId = readOneMessage(client.initialize)?.id;
    const early: Buffer[] = [];
    let earlyBytes = 0;
    let isReady = false;

    const retry = (end: BackendEnd): void => {
      clearTimeout(this.#timer);
      if (this.#state !== 'restoring') return;
      const silent: BackendEnd = {
        reason: 'failed',
        detail: 'The server did not answer initialize like an MCP server.',
      };
      if (this.#restarts.failures === 0) this.#options.onAway(end.reason === 'closed' ? silent : end);
      this.#restarts.failures += 1;
      this.restore(client, handshake);
    };
    const backend = this.#openBackend({
      onUnanswered: (ids, reason, isFinal) => isReady && onUnanswered(ids, reason, isFinal),
      onState: (state) => isReady && onState(state),
      onMessages: (lines, of) => {
        if (isReady) return onLines(this.#withoutReplays(lines), of);
        for (const [index, line] of lines.entries()) {
          const message = readOneMessage(line);
          if (message?.kind !== 'response' || message.id !== initializeId) {
            early.push(line);
            earlyBytes += line.length;
            if (earlyBytes <= maxEarlyBytes) continue;
            early.length = 0;
            detach('session', backend.close()); // its end starts the next try
            return;
          }
          isReady = this.#admit(line, handshake);
          if (isReady) onLines(this.#withoutReplays([...early, ...lines.slice(index + 1)]));
          return;
        }
      },
      onEnd: (end) => (isReady ? this.#lost(end) : retry(end)),
    });
    this.#backend = backend;
    this.#timer = setTimeout(() => detach('session', backend.close()), server.startTimeoutMs); // its end starts the next try
    backend.send(client.initialize, this.#newestHeaders);
  }

  /** The new backend has answered `initialize`: brings it to where the lost one was. False if it is another server now. */
  #admit(response: Buffer, handshake: Handshake): boolean {
    clearTimeout(this.#timer);
    const later = readHandshake(response);
    if (later === undefined || !canReplace(later, handshake)) {
      this.#state = 'closed';
      this.#options.onGivenUp('server_changed');
      return false;
    }
    this.#restarts.failures = 0;
    this.#state = 'live';
    const { texts, ids } = this.#replay;
    this.#replayIds = ids;
    const backend = this.#backend as Backend;
    for (const text of texts) backend.send(text, this.#newestHeaders);
    for (const { message, headers } of this.#waiting.takeAll()) backend.send(message, headers ?? this.#newestHeaders);
    this.#forget();
    this.#options.onRestored();
    if (this.#isPaused) backend.pause();
    return true;
  }

  #withoutReplays(lines: readonly Buffer[]): readonly Buffer[] {
    if (this.#replayIds.size === 0) return lines;
    const { others, left } = removeResponses(lines, this.#replayIds);
    this.#replayIds = left;
    return others;
  }
}
