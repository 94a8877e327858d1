import type { Backend, BackendEnd, RequestIds, Sent } from '../../../../core/backend/backend.ts';
import { Connection, type StartFailure } from '../../../../core/backend/starting/connection.ts';
import type { Reason } from '../../../../core/protocol/faults.ts';
import type { ForwardedHeaders } from '../../../../core/protocol/http/forwarded-headers.ts';
import type { Message } from '../../../../core/protocol/message/message.ts';
import { readDiscovery, revisionToRetry } from '../../../../core/protocol/modern/discovery.ts';
import { discoverRequest } from '../../../../core/protocol/modern/envelope.ts';
import { isClientRefused, type Server } from '../../../../core/server/server.ts';
import { failedStartReason } from '../../../../core/session/end-reason.ts';
import { contain, detach } from '../../../../core/util/boundary.ts';

export interface SharedProcessOptions {
  readonly server: Pick<Server, 'open' | 'introduction' | 'startTimeoutMs' | 'isRemote' | 'authorizesClients'>;
  /** The gateway's own version, sent to the server. */
  readonly version: string;
  /** See `SharedServerOptions`. */
  readonly after?: Promise<unknown> | undefined;
  /** Returns a number that no request has used. */
  nextNumber(): number;
  /** As `BackendEvents.onMessages`. */
  onMessages(messages: readonly Message[], requestIds: RequestIds | undefined): void;
  /** As `BackendEvents.onNoise`. */
  onNoise(text: Buffer, more?: number): void;
  /** A process has answered `server/discover`: waiting requests can be sent. */
  onReady(details: {
    readonly revisions: readonly string[];
    /** The declared capabilities; undefined if the answer has no `capabilities`. */
    readonly capabilities: ReadonlySet<string> | undefined;
    readonly startMs: number;
  }): void;
  /** As `BackendEvents.onUnanswered`. */
  onUnanswered(ids: RequestIds, reason: Reason, isFinal?: boolean): void;
  /** A ready process has ended by itself. */
  onLost(end: BackendEnd): void;
  /** A start with these headers has failed. */
  onStartFailed(reason: Reason, end: BackendEnd, headers: ForwardedHeaders): void;
  /** The process ended too often: none is started during the pause. */
  onCrashLoop(pauseMs: number): void;
}

const eraAdvice = 'If --era modern is set for this server, remove it.';
const notModern = `The server did not send a valid answer to server/discover. ${eraAdvice}`;

/** One attempt at a remote server is for all clients. They wait for it, and should get its reason soon. */
const maxRemotePauseMs = 1_000;

/**
 * The shared process of a modern server, across restarts (2026-07-28, basic/transports/stdio, "Unexpected
 * Termination"). A process is started when it is needed, without `initialize`: its answer to `server/discover` shows
 * that it runs and is modern. No request is sent before that answer.
 */
export class SharedProcess {
  readonly #options: SharedProcessOptions;
  #state: 'idle' | 'starting' | 'ready' | 'crash_loop' | 'closed' = 'idle';
  #backend: Backend | undefined;
  readonly #connection: Connection;

  constructor(options: SharedProcessOptions) {
    this.#options = options;
    const { isRemote } = options.server;
    this.#connection = new Connection({ isRemote, ...(isRemote && { maxPauseMs: maxRemotePauseMs }) });
  }

  get isReady(): boolean {
    return this.#state === 'ready';
  }

  /** True if a process runs or is being started. */
  get isRunning(): boolean {
    return this.#state === 'starting' || this.#state === 'ready';
  }

  get isCrashLoop(): boolean {
    return this.#state === 'crash_loop';
  }

  get pid(): number | undefined {
    return this.#backend?.pid;
  }

  /**
   * Starts a process unless one runs, is being started, or a crash loop pauses starts.
   * @param headers the headers of the request that needs the process: a server at a URL may refuse requests without
   * them
   */
  start(headers: ForwardedHeaders): void {
    if (this.#state !== 'idle') return;
    this.#state = 'starting';
    const startAfterPause = (): void => {
      const open = (): void => contain('shared_process', () => this.#open(headers));
      if (this.#state === 'starting') this.#connection.afterPause(open);
    };
    const { after } = this.#options;
    if (after === undefined) startAfterPause();
    else detach('shared_process', after.then(startAfterPause));
  }

  /** As `Backend.send`, once the process is ready. */
  send(message: Message, headers?: ForwardedHeaders): Sent {
    return this.#state === 'ready' && this.#backend !== undefined ? this.#backend.send(message, headers) : 'ended';
  }

  /** The process has answered a request. */
  noteAnswer(): void {
    this.#connection.hasWorked = true;
  }

  async close(): Promise<void> {
    this.#state = 'closed';
    this.#connection.stop();
    await this.#backend?.close();
  }

  #open(headers: ForwardedHeaders): void {
    const { server, version, nextNumber, onMessages, onNoise, onUnanswered, onLost } = this.#options;
    const startedAt = performance.now();
    let isRepeat = false;
    const request = discoverRequest(nextNumber(), { version });
    const backend = this.#connection.open(server.open, {
      request,
      timeoutMs: server.startTimeoutMs,
      events: {
        onMessages,
        onNoise,
        onUnanswered,
        onEnd: (end) => this.#handleEnd(this.#connection.countLoss(), () => onLost(end)),
      },
      onAnswer: (response) => {
        const protocolVersion = isRepeat ? undefined : revisionToRetry(response);
        if (protocolVersion === undefined)
          return this.#handleDiscovery(response, Math.round(performance.now() - startedAt));
        // Only the answer to a revision that the server serves has its capabilities.
        isRepeat = true;
        const repeated = discoverRequest(nextNumber(), { version, protocolVersion });
        // Sent after this call, which may be inside of the one that opens the backend.
        queueMicrotask(() => contain('shared_process', () => this.#backend?.send(repeated, headers)));
        return repeated;
      },
      onFailed: (end, why) => {
        // A client without a token must not delay the start for the next client.
        const isCrashLoop = !isClientRefused(end, server) && this.#connection.countFailedStart();
        this.#handleEnd(isCrashLoop, () => this.#reportFailedStart(end, why, headers));
      },
    });
    this.#backend = backend;
    backend.send(request, headers);
  }

  /** Returns false if the server is not modern. */
  #handleDiscovery(response: Message, startMs: number): boolean {
    const discovery = readDiscovery(response);
    if (discovery.era !== 'modern' || discovery.revisions.length === 0) return false;
    this.#state = 'ready';
    this.#options.server.introduction?.note(response.text);
    const { revisions, capabilities } = discovery;
    this.#options.onReady({ revisions, capabilities, startMs });
    return true;
  }

  #reportFailedStart(end: BackendEnd, why: StartFailure, headers: ForwardedHeaders): void {
    const { server, onStartFailed } = this.#options;
    if (end.isOtherTransport) onStartFailed('server_not_modern', end, headers);
    else if (why === 'refused') onStartFailed('server_not_modern', { ...end, detail: notModern }, headers);
    else if (why === 'silent') {
      const detail = `The server did not answer server/discover within ${server.startTimeoutMs} ms (--defaults.timeouts.start). ${eraAdvice}`;
      onStartFailed('server_start_timeout', { ...end, detail }, headers);
    } else onStartFailed(failedStartReason(end), end, headers);
  }

  #handleEnd(isCrashLoop: boolean, report: () => void): void {
    if (this.#state === 'closed') return;
    this.#backend = undefined;
    this.#state = isCrashLoop ? 'crash_loop' : 'idle';
    report();
    if (!isCrashLoop) return;
    this.#connection.afterPause(() => {
      this.#state = 'idle';
    });
    this.#options.onCrashLoop(this.#connection.pauseMs);
  }
}
