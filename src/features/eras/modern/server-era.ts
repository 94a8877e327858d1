import type { EraProbe, LegacyProcesses, ModernAccess, ProbeOutcome } from '../../../app/features/eras.ts';
import type { BackendEnd } from '../../../core/backend/backend.ts';
import type { SharedServerEvent } from '../../../core/ops/shared-server-events.ts';
import type { Reason } from '../../../core/protocol/faults.ts';
import { type ForwardedHeaders, noHeaders } from '../../../core/protocol/http/forwarded-headers.ts';
import type { Era } from '../../../core/protocol/revisions.ts';
import { differsByClient, isClientRefused, type Server } from '../../../core/server/server.ts';
import { failedStartReason } from '../../../core/session/end-reason.ts';
import type { Emit } from '../../../core/util/telemetry/emit.ts';
import { probeEra } from './era-probe.ts';
import { probeEraOverHttp } from './http-era-probe.ts';

export interface ServerEraOptions
  extends Pick<ModernAccess, 'openForProbe' | 'keepProbed' | 'openLegacyForProbe'>,
    Partial<Pick<ModernAccess, 'isOverHttp'>> {
  readonly server: Server;
  /** The configured era; `auto` probes the server. */
  readonly era: Era | 'auto';
  /** The processes of legacy sessions. Of some servers, no second one can run. */
  legacy?(): LegacyProcesses | undefined;
  /** The gateway's own version. */
  readonly version: string;
  readonly emit: Emit<SharedServerEvent>;
}

/**
 * How long a doubtful `legacy` is believed. A server that ended on the probe may have ended for another reason and
 * serve both eras. A remote server can be replaced at any time.
 */
const doubtfulMs = 60_000;

/** As above, for a bare refusal status: it may come from a proxy in front of the server. */
const bareRefusalMs = 5_000;

/** The least time between two probes of a server that does not start. */
const retryMs = 5_000;

/** As above, for a server where a probe costs one request. */
const retryOverHttpMs = 1_000;

const forEver = Number.POSITIVE_INFINITY;

/**
 * The observation of a session that doubts the era. `modern`: the server refused `initialize` like a modern server, so
 * a remembered era that is not certain is probed again. `end`: the server ended on `initialize`.
 */
export type EraEvidence = 'modern' | 'end';

/**
 * How a backend of a legacy session is opened: to the server itself, through a translator to a modern server, or so that
 * the answer to `initialize` decides.
 */
export type WayToOpen = 'direct' | 'translated' | 'undecided';

/**
 * Knows the era of one configured server: what was configured, what a probe has found, and what sessions have shown. A
 * probed era is remembered while it is certain enough.
 */
export class ServerEra {
  readonly #options: ServerEraOptions;
  #found: { readonly era: Era; readonly believedMs: number; readonly until: number } | undefined;
  #probing: Promise<Era | Reason> | undefined;
  /** True if a client waits for the running probe. */
  #isForClient = false;
  #failed: { readonly reason: Reason; readonly until: number } | undefined;
  #probe: EraProbe | undefined;
  #isClosed = false;
  /** Seen by sessions: the server opens legacy sessions, has refused to in a way that rules them out, or was silent. */
  #opensLegacy = false;
  #hasNoLegacy = false;
  #wasSilent = false;

  constructor(options: ServerEraOptions) {
    this.#options = options;
    const { era } = options;
    if (era !== 'auto') this.#found = { era, believedMs: forEver, until: forEver };
  }

  /** The era; undefined while it is unknown or no longer believed. */
  get era(): Era | undefined {
    return this.#found !== undefined && performance.now() < this.#found.until ? this.#found.era : undefined;
  }

  /**
   * Resolves with the era; all requests that need it share one probe. Resolves with the reason if the server does not
   * start.
   * @param headers the forwarded headers of the request that needs the era
   * @param seen the session's observation that makes the era doubtful
   * @param isProbe true if no client waits for the answer
   */
  async find(headers?: ForwardedHeaders, evidence?: EraEvidence, isProbe = false): Promise<Era | Reason> {
    const { era } = this;
    const isDoubted = evidence === 'modern';
    const isCertain = era === 'modern' || this.#found?.believedMs === forEver;
    if (era !== undefined && (isCertain || !isDoubted)) return era;
    if (this.#isClosed) return 'draining';
    if (!isDoubted && this.#failed !== undefined && performance.now() < this.#failed.until) return this.#failed.reason;
    this.#isForClient ||= !isProbe;
    const isShared = this.#probing !== undefined;
    this.#probing ??= this.#startProbe(headers, evidence === 'end').finally(() => {
      this.#probing = undefined;
      this.#isForClient = false;
    });
    const found = await this.#probing;
    // The server may have refused only the client of that probe.
    const isOfOther = isShared && found === 'server_unauthorized' && differsByClient(this.#options.server);
    return isOfOther ? this.find(headers, evidence, isProbe) : found;
  }

  /**
   * Decides how a backend of a legacy session is opened. A local server that has opened a session is not asked again. A
   * remote one can be replaced at any time.
   * @param isResumed the session goes on at the server: only a server with legacy sessions has any
   */
  forSession(isResumed: boolean): WayToOpen {
    const { era, server } = this.#options;
    if (era !== 'auto') return era === 'modern' ? 'translated' : 'direct';
    if (isResumed) return 'direct';
    if (this.#hasNoLegacy) return 'translated';
    return this.#opensLegacy && !server.isRemote ? 'direct' : 'undecided';
  }

  /** The server itself has opened a legacy session, which was not certain before. */
  noteLegacy(): void {
    const { server, emit } = this.#options;
    this.#opensLegacy = true;
    this.#wasSilent = false;
    emit({ type: 'era-seen', server: server.name, era: 'legacy' });
  }

  /** The server has refused `initialize` in a way that rules out a legacy era. */
  noteNoLegacy(): void {
    this.#hasNoLegacy = true;
  }

  /** The server is modern and does not answer `initialize`. Once, a slow start may be the reason. */
  noteSilence(): void {
    this.#hasNoLegacy ||= this.#wasSilent;
    this.#wasSilent = true;
  }

  /** A translator has ended by itself: the server may be another one now. */
  noteTranslatorLost(): void {
    this.#hasNoLegacy = false;
  }

  /** Forgets a probed era after the server did not answer like a modern one. The next request probes again. */
  forget(): void {
    if (this.#options.era === 'auto') this.#found = undefined;
  }

  /** True if the operator has configured the era. */
  get isConfigured(): boolean {
    return this.#options.era !== 'auto';
  }

  /** Stops probing. Resolves when the last probe is over, and its process is gone or kept for a client. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#probe?.close();
  }

  async #startProbe(headers: ForwardedHeaders = noHeaders, hasEnded: boolean): Promise<Era | Reason> {
    const {
      server,
      openForProbe: open,
      openLegacyForProbe: openLegacy,
      keepProbed,
      isOverHttp = false,
      version,
      emit,
    } = this.#options;
    const startedAt = performance.now();
    const legacy = this.#options.legacy?.();
    const timeoutMs = legacy?.isServing === true ? legacy.silenceMs : server.startTimeoutMs;
    let isForClient = false;
    const onLateEnd = (end: BackendEnd): void => {
      if (isForClient) this.#reportOutput(end);
    };
    this.#probe = isOverHttp
      ? probeEraOverHttp({ open, openLegacy, version, timeoutMs, headers })
      : probeEra({ open, keepProbed, version, timeoutMs, headers, hasEnded, onLateEnd });
    const outcome = await this.#probe.outcome;
    const now = performance.now();
    const known = this.#found;
    if (outcome.era === undefined) {
      const reason = failureReason(outcome);
      const isSilent = reason === 'server_start_timeout';
      if ((isSilent || reason === 'server_start_failed') && legacy?.isServing === true && !this.#isClosed) {
        if (isSilent) legacy.noteOnlyProcess();
        this.#found = { era: 'legacy', believedMs: doubtfulMs, until: now + doubtfulMs };
        return 'legacy';
      }
      isForClient = this.#isForClient;
      if (outcome.end !== undefined && !this.#isClosed) this.#reportFailure(outcome.end, hasEnded);
      if (server.isRemote && known !== undefined) {
        // The server is away or unwell; it keeps the era that it had.
        this.#found = { ...known, until: now + known.believedMs };
        return known.era;
      }
      // A server that authenticates clients may have refused only this one.
      if (!differsByClient(server)) {
        this.#failed = { reason, until: now + (isOverHttp ? retryOverHttpMs : retryMs) };
      }
      return reason;
    }
    const believedMs = this.#believedMs(outcome, known?.era);
    this.#found = { era: outcome.era, believedMs, until: now + believedMs };
    if (outcome.era !== known?.era) {
      const probeMs = Math.round(now - startedAt);
      emit({ type: 'era-found', server: server.name, era: outcome.era, probeMs });
    }
    return outcome.era;
  }

  /** If the process ended for a session as well, that session reports it: one client request is one failed start. */
  #reportFailure(end: BackendEnd, hasEnded: boolean): void {
    const { server, emit } = this.#options;
    if (isClientRefused(end, server)) return;
    if (hasEnded) return this.#reportOutput(end);
    emit({ type: 'shared-start-failed', server: server.name, end, isByProbe: !this.#isForClient });
  }

  #reportOutput({ lastOutput = [] }: BackendEnd): void {
    const { server, emit } = this.#options;
    if (lastOutput.length > 0) emit({ type: 'probe-output', server: server.name, lastOutput });
  }

  #believedMs({ era, isDoubtful }: Extract<ProbeOutcome, { era: Era }>, known: Era | undefined): number {
    const { server, isOverHttp = false } = this.#options;
    if (era === 'modern') return forEver; // until `forget` is called
    if (isOverHttp && isDoubtful) return bareRefusalMs;
    const isConfirmed = !isDoubtful || known === era;
    return server.isRemote || !isConfirmed ? doubtfulMs : forEver;
  }
}

const failureReason = ({ end }: Extract<ProbeOutcome, { era: undefined }>): Reason =>
  end === undefined ? 'server_start_timeout' : failedStartReason(end);
