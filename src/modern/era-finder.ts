import type { BackendEnd, OpenBackend } from '../backend/backend.ts';
import type { Reason } from '../protocol/faults.ts';
import { type ForwardedHeaders, noHeaders } from '../protocol/http/forwarded-headers.ts';
import type { Era } from '../protocol/revisions.ts';
import { differsByClient, type Server } from '../server/server.ts';
import { failedStartReason } from '../session/requests/lost-calls.ts';
import { type EraProbe, type ProbeOutcome, probeEra } from './era-probe.ts';
import type { ModernObserver } from './modern-observer.ts';

/** What is needed to find out the era of a server. */
export interface EraFinderOptions {
  readonly server: Server;
  /** The era of the server; `auto` has it found out. */
  readonly era: Era | 'auto';
  /** Opens a process, or a connection, that is used for nothing but finding out the era. */
  readonly openSibling: OpenBackend;
  /** It is reached over HTTP: each question is answered on its own. */
  readonly isOverHttp?: boolean;
  /** The gateway's own version. */
  readonly version: string;
  readonly observer: ModernObserver;
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

/**
 * What a session has just seen of a server. `modern`: it spoke as one of the modern era, so that what else is believed for a
 * while is asked for again. `end`: it ended on `initialize`.
 */
export type EraEvidence = 'modern' | 'end';

/** Of which era a configured server is: said, or found out at the first request and then remembered, as long as that is certain. */
export class EraFinder {
  readonly #options: EraFinderOptions;
  #found: { readonly era: Era; readonly believedMs: number; readonly until: number } | undefined;
  #probing: Promise<Era | Reason> | undefined;
  /** A client waits for that, too. */
  #isForClient = false;
  #failed: { readonly reason: Reason; readonly until: number } | undefined;
  #probe: EraProbe | undefined;
  #isClosed = false;

  constructor(options: EraFinderOptions) {
    this.#options = options;
    const { era } = options;
    if (era !== 'auto') this.#found = { era, believedMs: forEver, until: forEver };
  }

  /** The era as far as it is known. */
  get era(): Era | undefined {
    return this.#found !== undefined && performance.now() < this.#found.until ? this.#found.era : undefined;
  }

  /**
   * The era: known, or found out once for all requests that wait for it. Resolves with the reason if the server does not start.
   * @param headers for the server, of the request that makes it necessary to ask
   * @param seen what a session has just seen of the server
   * @param isProbe no client waits for the answer
   */
  async find(headers?: ForwardedHeaders, seen?: EraEvidence, isProbe = false): Promise<Era | Reason> {
    const { era } = this;
    const isDoubted = seen === 'modern';
    const isCertain = era === 'modern' || this.#found?.believedMs === forEver;
    if (era !== undefined && (isCertain || !isDoubted)) return era;
    if (this.#isClosed) return 'draining';
    if (!isDoubted && this.#failed !== undefined && performance.now() < this.#failed.until) return this.#failed.reason;
    this.#isForClient ||= !isProbe;
    this.#probing ??= this.#ask(headers, seen === 'end').finally(() => {
      this.#probing = undefined;
      this.#isForClient = false;
    });
    return this.#probing;
  }

  /** It did not answer as a server of the modern era: it is asked again. */
  forget(): void {
    if (this.#options.era === 'auto') this.#found = undefined;
  }

  /** Asks no more. Resolves when nothing of a question is left. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#probe?.close();
  }

  async #ask(headers: ForwardedHeaders = noHeaders, hasEnded: boolean): Promise<Era | Reason> {
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
      if (outcome.end !== undefined && !this.#isClosed) this.#tellFailure(outcome.end, hasEnded);
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
}

type FoundEra = Extract<ProbeOutcome, { era: Era }>;

const reasonOf = ({ end }: Extract<ProbeOutcome, { era: undefined }>): Reason =>
  end === undefined ? 'server_start_timeout' : failedStartReason(end);
