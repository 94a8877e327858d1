import type { BackendEnd, OpenBackend } from '../backend/backend.ts';
import type { Reason } from '../protocol/faults.ts';
import { type ForwardedHeaders, noHeaders } from '../protocol/forwarded-headers.ts';
import { type Message, memberValue, readOwn } from '../protocol/message.ts';
import { ownRequest } from '../protocol/modern/envelope.ts';
import type { LogLevel } from '../protocol/modern/log-levels.ts';
import type { RequestHeaders } from '../protocol/modern/mirrored-headers.ts';
import { type Era, modernRevisions } from '../protocol/revisions.ts';
import { differsByClient, type Server } from '../session/session-parts.ts';
import type { Changes } from '../store/changes.ts';
import type { Answer, CallAnswer } from './answer.ts';
import type { Cancel, Origin } from './calls.ts';
import { type EraProbe, type ProbeOutcome, probeEra } from './era-probe.ts';
import type { ModernObserver } from './observer.ts';
import { SharedChanges } from './shared-changes.ts';
import type { SharedLimits } from './shared-limits.ts';
import { SharedServer } from './shared-server.ts';
import { type ParamFault, ToolHeaders } from './tool-headers.ts';

/** What a configured server needs to be served to clients of the modern era. */
export interface ModernServerOptions {
  readonly server: Server;
  /** The era of the server; `auto` has it found out. */
  readonly era: Era | 'auto';
  /** Opens a process, or a connection, that is used for nothing but finding out the era. */
  readonly openSibling: OpenBackend;
  /** It is reached over HTTP: each question is answered on its own. */
  readonly isOverHttp?: boolean;
  /** The gateway's own version. */
  readonly version: string;
  readonly limits: SharedLimits;
  readonly observer: ModernObserver;
  /** What instances tell each other; undefined if there is one alone. */
  readonly changes?: Changes | undefined;
}

/**
 * A server that ended on the question for its era may have had another reason, and serve both; one at a URL can be replaced at
 * any time: a server that seems to be of the legacy era for such a reason is asked again after this.
 */
const doubtfulMs = 60_000;

/** The same for a status that says nothing but no: for a while it can come of what stands before the server. */
const bareRefusalMs = 5_000;

/** A server that does not start is tried again after this at the earliest. */
const retryMs = 5_000;

/** The same where trying is one request. */
const retryOverHttpMs = 1_000;

const forEver = Number.POSITIVE_INFINITY;

/** The gateway's own list of tools holds a call no longer than this. */
const listTimeoutMs = 10_000;

/**
 * What a session has just seen of a server. `modern`: it spoke as one of the modern era, so that what else is believed for a
 * while is asked for again. `end`: it ended on `initialize`.
 */
export type SeenOfEra = 'modern' | 'end';

/**
 * A configured server as clients of the modern era meet it: of which era it is, found out at their first request and then
 * remembered, and if it is of theirs, the process that they share.
 */
export class ModernServer {
  readonly #options: ModernServerOptions;
  readonly #shared: SharedServer;
  readonly #tools: ToolHeaders;
  /** Undefined where one instance is all that there is, or where the server is one for all instances. */
  readonly #changes: SharedChanges | undefined;
  #found: { readonly era: Era; readonly believedMs: number; readonly until: number } | undefined;
  #probing: Promise<Era | Reason> | undefined;
  /** A client waits for that, too. */
  #isForClient = false;
  #failed: { readonly reason: Reason; readonly until: number } | undefined;
  #probe: EraProbe | undefined;
  #isDraining = false;
  #revisions: readonly string[] = modernRevisions;

  constructor(options: ModernServerOptions) {
    this.#options = options;
    const { server, version, limits, observer, era, changes } = options;
    if (era !== 'auto') this.#found = { era, believedMs: forEver, until: forEver };
    this.#tools = new ToolHeaders({ list: (cursor, headers) => this.#listTools(cursor, headers) });
    const open = observer.seeBackends?.(server.name, server.open) ?? server.open;
    this.#shared = new SharedServer({
      ...{ server: { ...server, open }, version, limits, observer },
      onReady: (revisions) => {
        this.#revisions = revisions;
        this.#tools.forget();
        this.#changes?.processReady();
      },
      onLost: () => this.#changes?.processLost(),
      onNotModern: () => {
        if (era === 'auto') this.#found = undefined;
      },
      onTools: (response, headers) => this.#tools.learn(response, headers),
      onToolsChanged: () => this.#tools.forget(),
    });
    if (changes === undefined || server.isRemote) return;
    this.#changes = new SharedChanges({
      ...{ changes, topic: `modern ${server.digest} ${server.name}` },
      listen: (notifications, answer) =>
        this.#shared.request(this.#ownRequest('subscriptions/listen', { notifications }), undefined, answer),
      onCut: () => observer.wishesCut(server.name),
    });
  }

  get name(): string {
    return this.#options.server.name;
  }

  /** The revisions of this era that the server and the gateway serve. */
  get revisions(): readonly string[] {
    return this.#revisions;
  }

  /** The newest revision of this era that the server and the gateway serve. */
  get revision(): string {
    return this.#revisions.at(-1) as string;
  }

  /** The era as far as it is known. */
  get era(): Era | undefined {
    return this.#found !== undefined && performance.now() < this.#found.until ? this.#found.era : undefined;
  }

  /** What its clients have in flight: calls, and streams of subscriptions. */
  get inFlight(): { readonly calls: number; readonly streams: number } {
    return this.#shared.inFlight;
  }

  /** Starts the process ahead, if it is known that there will be one. */
  start(): void {
    if (this.#options.era !== 'modern') return;
    this.#changes?.join();
    this.#shared.start();
  }

  /**
   * The era: known, or found out once for all requests that wait for it. Resolves with the reason if the server does not start.
   * @param headers for the server, of the request that makes it necessary to ask
   * @param seen what a session has just seen of the server
   * @param isProbe no client waits for the answer
   */
  async findEra(headers?: ForwardedHeaders, seen?: SeenOfEra, isProbe = false): Promise<Era | Reason> {
    const { era } = this;
    const isDoubted = seen === 'modern';
    const isCertain = era === 'modern' || this.#found?.believedMs === forEver;
    if (era !== undefined && (isCertain || !isDoubted)) return era;
    if (this.#isDraining) return 'draining';
    if (!isDoubted && this.#failed !== undefined && performance.now() < this.#failed.until) return this.#failed.reason;
    this.#isForClient ||= !isProbe;
    this.#probing ??= this.#find(headers, seen === 'end').finally(() => {
      this.#probing = undefined;
      this.#isForClient = false;
    });
    return this.#probing;
  }

  /** Checks the mirrored parameters of a `tools/call`. */
  checkParams(call: Message, headers: RequestHeaders, forwarded?: ForwardedHeaders): ParamFault | Promise<ParamFault> {
    return this.#tools.check(call, memberValue(call, 'params', 'name'), headers, forwarded);
  }

  /** Hands a request to the server that its client waits for. */
  request(request: Message, logLevel: LogLevel | undefined, answer: Answer, forwarded?: ForwardedHeaders): void {
    const { server, observer } = this.#options;
    const cancel = this.#request(request, logLevel, answer, { headers: forwarded });
    answer.onGone((why) => {
      cancel();
      if (why === 'slow') observer.clientCut(server.name);
    });
  }

  /** The same for a session of the legacy era. Returns what to call when its client does not wait any more. */
  ask(request: Message, logLevel: LogLevel | undefined, answer: CallAnswer, headers?: ForwardedHeaders): Cancel {
    return this.#request(request, logLevel, answer, { headers, isOfSession: true });
  }

  /** The same for a question whether the server is well, which no client waits for. */
  probe(request: Message, answer: CallAnswer): () => void {
    return this.#request(request, undefined, answer, { isOfSession: true, isOfProbe: true });
  }

  /** Passes on a notification of a client. Returns why it was not taken. */
  notify(notification: Message, forwarded?: ForwardedHeaders): Reason | undefined {
    return this.#shared.notify(notification, forwarded);
  }

  /** A notification of a client has no process to go to. */
  noteUnplaced(text: Buffer): void {
    this.#options.observer.dropped(this.name, 'unplaced', text);
  }

  /** Ends the server in order (P9); sessions are served until they have ended. Resolves when no process is left. */
  async drain(graceMs: number, sessionsEnded?: Promise<unknown>): Promise<void> {
    this.#isDraining = true;
    this.#changes?.drain();
    await Promise.all([this.#shared.drain(graceMs, sessionsEnded), this.#probe?.close()]);
    await this.#changes?.close();
  }

  #request(request: Message, logLevel: LogLevel | undefined, answer: CallAnswer, origin: Origin): Cancel {
    const changes = this.#changes;
    const send = (to: CallAnswer): Cancel => this.#shared.request(request, logLevel, to, origin);
    changes?.join();
    if (changes === undefined || request.method !== 'subscriptions/listen') return send(answer);
    // A session's calls must not overtake its subscription, and go to the process of this instance.
    return changes.listen(request, answer, origin.isOfSession !== true, send);
  }

  #ownRequest(method: string, params: Readonly<Record<string, unknown>>): Message {
    const { version } = this.#options;
    return readOwn(ownRequest('own', method, params, { version, protocolVersion: this.revision }));
  }

  async #find(headers: ForwardedHeaders = noHeaders, hasEnded: boolean): Promise<Era | Reason> {
    const { server, openSibling, isOverHttp = false, version, observer } = this.#options;
    const startedAt = performance.now();
    const timeoutMs = server.startTimeoutMs;
    let isForClient = false;
    const onLateEnd = (end: BackendEnd): void => {
      if (isForClient) this.#tellOutput(end);
    };
    this.#probe = probeEra({ open: openSibling, version, timeoutMs, isOverHttp, headers, hasEnded, onLateEnd });
    const outcome = await this.#probe.outcome;
    const now = performance.now();
    const known = this.#found;
    if (outcome.era === undefined) {
      const reason = reasonOf(outcome);
      isForClient = this.#isForClient;
      if (outcome.end !== undefined && !this.#isDraining) this.#tellFailure(outcome.end, hasEnded);
      if (server.isRemote && known !== undefined) {
        // It is away, or not well: that makes it no other server.
        this.#found = { ...known, until: now + known.believedMs };
        return known.era;
      }
      // One that wants to know its clients may have refused this one alone.
      if (!differsByClient(server)) {
        this.#failed = { reason, until: now + (isOverHttp ? retryOverHttpMs : retryMs) };
      }
      return reason;
    }
    const believedMs = this.#believedMs(outcome, known?.era);
    this.#found = { era: outcome.era, believedMs, until: now + believedMs };
    if (outcome.era !== known?.era) {
      observer.eraFound(server.name, { era: outcome.era, probeMs: Math.round(now - startedAt) });
    }
    return outcome.era;
  }

  /** Of one that ended for a session too, that session tells: one request of a client is one start that failed. */
  #tellFailure(end: BackendEnd, hasEnded: boolean): void {
    const { server, observer } = this.#options;
    if (hasEnded) return this.#tellOutput(end);
    observer.startFailed(server.name, end, { isByProbe: !this.#isForClient });
  }

  #tellOutput({ lastOutput = [] }: BackendEnd): void {
    const { server, observer } = this.#options;
    if (lastOutput.length > 0) observer.wroteAtStart(server.name, lastOutput);
  }

  #believedMs({ era, isDoubtful }: FoundEra, known: Era | undefined): number {
    const { server, isOverHttp = false } = this.#options;
    if (era === 'modern') return forEver; // until it does not answer as one
    if (isOverHttp && isDoubtful) return bareRefusalMs;
    const isNoAccident = !isDoubtful || known === era;
    return server.isRemote || !isNoAccident ? doubtfulMs : forEver;
  }

  #listTools(cursor: string | undefined, headers: ForwardedHeaders): Promise<Buffer | undefined> {
    const request = this.#ownRequest('tools/list', cursor === undefined ? {} : { cursor });
    return new Promise((resolve) => {
      const settle = (text?: Buffer): void => {
        clearTimeout(timer);
        resolve(text);
      };
      const timer = setTimeout(() => {
        cancel();
        settle();
      }, listTimeoutMs);
      const answer: CallAnswer = { message: () => false, response: settle, fault: () => settle() };
      const cancel = this.#shared.request(request, undefined, answer, { headers });
    });
  }
}

type FoundEra = Extract<ProbeOutcome, { era: Era }>;

const reasonOf = ({ end }: Extract<ProbeOutcome, { era: undefined }>): Reason =>
  end === undefined ? 'server_start_timeout' : 'server_start_failed';
