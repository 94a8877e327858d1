import type { Backend, BackendEnd, RequestIds } from '../../backend/backend.ts';
import { openStartingBackend, type StartFailure } from '../../backend/starting/starting-backend.ts';
import type { Reason } from '../../protocol/faults.ts';
import type { ForwardedHeaders } from '../../protocol/http/forwarded-headers.ts';
import type { Message } from '../../protocol/message/message.ts';
import { readDiscovery } from '../../protocol/modern/discovery.ts';
import { ownRequest } from '../../protocol/modern/envelope.ts';
import { modernRevisions } from '../../protocol/revisions.ts';
import { isClientRefused, type Server } from '../../server/server.ts';
import { failedStartReason } from '../../session/requests/lost-calls.ts';
import { contain, detach } from '../../util/boundary.ts';
import { backoff } from '../../util/timing/backoff.ts';
import { LossWindow } from '../../util/timing/loss-window.ts';

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

/**
 * More ends of processes and starts than this within the window are a crash loop. Failed starts of a remote server do
 * not count: its operator starts it again.
 */
const maxEnds = 5;
const endWindowMs = 60_000;
/** How long a server in a crash loop is not started. */
const crashLoopPauseMs = 30_000;

const eraAdvice = 'If --era modern is set for this server, remove it.';
const notModern = `The server did not send a valid answer to server/discover. ${eraAdvice}`;

/**
 * The pause before a start that follows the second end in a row; the first end has no pause. The pause doubles up to a
 * limit.
 */
const pauseAfter = backoff({ firstMs: 250, maxMs: 5_000 });

/** An attempt at a remote server costs one request, and clients should get its reason soon. */
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
  #timer: NodeJS.Timeout | undefined;
  /** The ends of recent processes and starts. */
  readonly #ends = new LossWindow(maxEnds, endWindowMs);
  #failures = 0;

  constructor(options: SharedProcessOptions) {
    this.#options = options;
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
    const maxMs = this.#options.server.isRemote ? maxRemotePauseMs : Number.POSITIVE_INFINITY;
    const pauseMs = this.#failures < 2 ? 0 : Math.min(pauseAfter(this.#failures - 2), maxMs);
    const startAfterPause = (): void => {
      const open = (): void => contain('shared_process', () => this.#open(headers));
      if (this.#state === 'starting') this.#timer = setTimeout(open, pauseMs);
    };
    const { after } = this.#options;
    if (after === undefined) startAfterPause();
    else detach('shared_process', after.then(startAfterPause));
  }

  /** As `Backend.send`, once the process is ready. */
  send(message: Message, headers?: ForwardedHeaders): 'sent' | 'full' | 'ended' {
    return this.#state === 'ready' && this.#backend !== undefined ? this.#backend.send(message, headers) : 'ended';
  }

  /**
   * The process has answered a request: its next end counts as the first in a row. The connection of a remote server works
   * then, and its end is no crash: proxies cut idle connections.
   */
  noteAnswer(): void {
    this.#failures = 0;
    if (this.#options.server.isRemote) this.#ends.clear();
  }

  async close(): Promise<void> {
    this.#state = 'closed';
    clearTimeout(this.#timer);
    await this.#backend?.close();
  }

  #open(headers: ForwardedHeaders): void {
    const { server, version, nextNumber, onMessages, onNoise, onUnanswered, onLost } = this.#options;
    const startedAt = performance.now();
    const [protocolVersion] = modernRevisions.slice(-1) as [string];
    const request = ownRequest(nextNumber(), 'server/discover', {}, { version, protocolVersion });
    const backend = openStartingBackend(server.open, {
      request,
      timeoutMs: server.startTimeoutMs,
      events: { onMessages, onNoise, onUnanswered, onEnd: (end) => this.#handleEnd(() => onLost(end)) },
      onAnswer: (response) => this.#handleDiscovery(response, Math.round(performance.now() - startedAt)),
      onFailed: (end, why) => {
        // A client without a token must not delay the start for the next client.
        const failures = isClientRefused(end, server) ? 0 : 1;
        this.#handleEnd(() => this.#reportFailedStart(end, why, headers), failures);
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

  #handleEnd(report: () => void, failures = 1): void {
    if (this.#state === 'closed') return;
    const wasReady = this.#state === 'ready';
    this.#backend = undefined;
    this.#failures += failures;
    const isCrashLoop = (wasReady || !this.#options.server.isRemote) && this.#ends.count();
    this.#state = isCrashLoop ? 'crash_loop' : 'idle';
    report();
    if (!isCrashLoop) return;
    this.#timer = setTimeout(() => {
      this.#state = 'idle';
      this.#ends.clear();
    }, crashLoopPauseMs);
    this.#options.onCrashLoop(crashLoopPauseMs);
  }
}
