// src/era/legacy-on-modern: serves legacy sessions at servers of the modern era.

import type {
  Backend,
  BackendEnd,
  BackendEvents,
  CloseOptions,
  OpenBackend,
  OpenOptions,
  RequestIds,
} from '../../backend/backend.ts';
import type { Reason, RequestId } from '../../protocol/faults.ts';
import type { ForwardedHeaders } from '../../protocol/http/forwarded-headers.ts';
import { errorCodeIn } from '../../protocol/json/splice.ts';
import { isLegacyRevision, modernErrors } from '../../protocol/known-revisions.ts';
import { type Message, responsesIn } from '../../protocol/message/message.ts';
import { readDiscovery, versionsAt } from '../../protocol/modern/discovery.ts';
import { methodNotFound, modernErrorCodes } from '../../protocol/revisions.ts';
import { detach } from '../../util/boundary.ts';
import { TimeLimit } from '../../util/timing/time-limit.ts';
import type { EraLookup } from './server-side.ts';

/** The ways to open a server whose era is unknown. */
export interface EitherEraOptions {
  /** Opens a backend that gets the client's messages as they are. */
  readonly direct: OpenBackend;
  /** Opens a translator to a modern server. */
  readonly translated: OpenBackend;
  readonly eras: EraLookup;
  /** True for a server over HTTP: if it refuses `initialize` by a status, its backend counts as not started. */
  readonly isOverHttp: boolean;
  /** Called each time the server itself opens a legacy session. */
  onLegacy(): void;
  /** How long `initialize` may stay unanswered before the era is probed, in milliseconds. */
  readonly silentMs: number;
}

/**
 * Opens backends for legacy sessions, whatever the era of the server (docs/decisions/0025).
 *
 * A server of both eras serves legacy sessions itself, so the client's `initialize` goes to it unchanged. Only if the
 * server refuses `initialize`, or ends on it, the era is probed. If the server is modern, `initialize` goes to a
 * translator and the client does not notice.
 *
 * A refusal that rules out a legacy era is remembered until a translator ends by itself. The silence of a modern server
 * is remembered after two sessions in a row: the first can come from a slow start. If a server refuses `initialize`
 * like a modern server but does not confirm its era, the refusal does not reach the client. The backend counts as not
 * started, and the client tries again.
 */
export function openEitherEra(options: EitherEraOptions): OpenBackend {
  const server = new EitherEraServer(options);
  return (events, opening) => server.open(events, opening);
}

/** A server whose era is unknown, and what its sessions have shown of it. */
class EitherEraServer {
  readonly options: EitherEraOptions;
  #hasNoLegacy = false;
  #wasSilent = false;

  constructor(options: EitherEraOptions) {
    this.options = options;
  }

  open(events: BackendEvents, opening: OpenOptions | undefined): Backend {
    if (opening?.resume !== undefined) return this.options.direct(events, opening);
    if (this.#hasNoLegacy) return this.openTranslated(events, opening);
    return new UndecidedBackend(this, events, opening);
  }

  openTranslated(events: BackendEvents, opening: OpenOptions | undefined): Backend {
    const onEnd = (end: BackendEnd): void => {
      if (end.reason !== 'closed') this.#hasNoLegacy = false;
      events.onEnd(end);
    };
    return this.options.translated(
      {
        onMessages: (messages, relatedRequests) => events.onMessages(messages, relatedRequests),
        onNoise: (text, more) => events.onNoise(text, more),
        onUnanswered: (ids, reason, isFinal) => events.onUnanswered(ids, reason, isFinal),
        onState: (state) => events.onState?.(state),
        onEnd,
      },
      opening,
    );
  }

  /** True if a backend's end may be a refusal of `initialize`. */
  isRefusal({ reason }: BackendEnd): boolean {
    return reason === 'exited' || (this.options.isOverHttp && reason === 'failed');
  }

  /** The server has ruled out a legacy era. */
  noteNoLegacy(): void {
    this.#hasNoLegacy = true;
  }

  /** The server has opened a legacy session. */
  noteAnswer(): void {
    this.#wasSilent = false;
    this.options.onLegacy();
  }

  /** The server is modern and does not answer `initialize`. */
  noteSilence(): void {
    this.#hasNoLegacy ||= this.#wasSilent;
    this.#wasSilent = true;
  }
}

/** The client's `initialize`. */
interface Opening {
  readonly message: Message;
  readonly headers: ForwardedHeaders | undefined;
  readonly id: RequestId;
}

/** The event in place of a result of `initialize`: an error, the end of the server, or a lost answer. */
type Refusal = Message | 'ended' | 'unanswered';

/** A backend whose era is decided by the answer to `initialize`. Nothing else is sent before that answer. */
class UndecidedBackend implements Backend, BackendEvents {
  readonly #server: EitherEraServer;
  readonly #events: BackendEvents;
  readonly #options: OpenOptions | undefined;
  #backend: Backend;
  #state: 'opening' | 'probing' | 'decided' = 'opening';
  /** Undefined before `initialize`, and once the era is decided. */
  #opening: Opening | undefined;
  /** Events of the backend while its era is probed. They are reported if the backend keeps its session. */
  #deferredEvents: (() => void)[] | undefined;
  #isPaused = false;
  #isClosed = false;
  #silenceTimer: TimeLimit | undefined;
  /** Resolves when the backend that a translator has replaced is gone. */
  #replaced: Promise<void> | undefined;

  constructor(server: EitherEraServer, events: BackendEvents, options: OpenOptions | undefined) {
    this.#server = server;
    this.#events = events;
    this.#options = options;
    this.#backend = server.options.direct(this, options);
  }

  get pid(): number | undefined {
    return this.#backend.pid;
  }

  send(message: Message, headers?: ForwardedHeaders): 'sent' | 'full' | 'ended' {
    if (this.#state === 'opening' && message.method === 'initialize') {
      this.#opening = { message, headers, id: message.id as RequestId };
      this.#silenceTimer = new TimeLimit(
        () => detach('session', this.#probeWhenSilent()),
        this.#server.options.silentMs,
      );
    }
    return this.#backend.send(message, headers);
  }

  pause(): void {
    this.#isPaused = true;
    this.#backend.pause();
  }

  resume(): void {
    this.#isPaused = false;
    if (this.#state !== 'probing') this.#backend.resume();
  }

  async close(how?: CloseOptions): Promise<void> {
    this.#isClosed = true;
    this.#silenceTimer?.clear();
    await Promise.all([this.#backend.close(how), this.#replaced]);
  }

  onMessages(messages: readonly Message[], requestIds?: RequestIds): void {
    if (this.#state === 'decided' && this.#replaced === undefined) return this.#events.onMessages(messages, requestIds);
    const report = (): void => this.#events.onMessages(messages, requestIds);
    if (this.#state !== 'opening') return this.#handleEvent(undefined, report);
    const { id } = this.#opening ?? {};
    const answer = responsesIn(messages).find((response) => response.id === id);
    if (answer?.isError === false) {
      this.#decide();
      this.#opening = undefined; // the session keeps its own copy
      this.#server.noteAnswer();
    }
    this.#handleEvent(answer, report);
  }

  onNoise(text: Buffer, more?: number): void {
    this.#handleEvent(undefined, () => this.#events.onNoise(text, more));
  }

  onUnanswered(ids: RequestIds, reason: Reason, isFinal?: boolean): void {
    const isRefusal = this.#opening !== undefined && ids.includes(this.#opening.id);
    this.#handleEvent(isRefusal ? 'unanswered' : undefined, () => this.#events.onUnanswered(ids, reason, isFinal));
  }

  onState(state: string): void {
    this.#handleEvent(undefined, () => this.#events.onState?.(state));
  }

  onEnd(end: BackendEnd): void {
    this.#handleEvent(this.#server.isRefusal(end) ? 'ended' : undefined, () => {
      this.#decide();
      this.#events.onEnd(end);
    });
  }

  /**
   * Handles an event of the backend. A refusal of `initialize` starts the probe, and later events wait for its outcome.
   */
  #handleEvent(refusal: Refusal | undefined, report: () => void): void {
    if (this.#replaced !== undefined) return;
    const canProbe = this.#state === 'opening' && this.#opening !== undefined && !this.#isClosed;
    if (refusal !== undefined && canProbe) this.#probe(refusal);
    if (this.#state !== 'probing') return report();
    this.#deferredEvents ??= [];
    this.#deferredEvents.push(report);
  }

  /**
   * Probes the era because `initialize` is unanswered. A modern server never answers it. An answer that arrives during
   * the probe decides instead.
   */
  async #probeWhenSilent(): Promise<void> {
    const era = await this.#server.options.eras.findEra(this.#opening?.headers);
    if (era !== 'modern' || this.#state !== 'opening' || this.#isClosed) return;
    this.#decide();
    this.#server.noteSilence();
    this.#translate();
  }

  #decide(): void {
    this.#state = 'decided';
    this.#silenceTimer?.clear();
    this.#silenceTimer = undefined; // a timer is large
  }

  #probe(refusal: Refusal): void {
    this.#state = 'probing';
    // A probe may take a minute, and a server that writes meanwhile must not fill the memory (P8).
    this.#backend.pause();
    const answer = typeof refusal === 'string' ? undefined : refusal;
    const isDoubted = answer !== undefined && isModernRefusal(answer);
    const evidence = isDoubted ? 'modern' : refusal === 'ended' ? 'end' : undefined;
    detach(
      'session',
      this.#server.options.eras.findEra(this.#opening?.headers, evidence).then((era) => {
        this.#decide();
        const isModern = era === 'modern' && !this.#isClosed;
        if (isModern && answer !== undefined && rulesOutLegacy(answer)) this.#server.noteNoLegacy();
        if (isModern) return this.#translate();
        const isLegacy = era === 'legacy' && (answer === undefined || readDiscovery(answer).era === 'legacy');
        if (isDoubted && !isLegacy && !this.#isClosed) return this.#endUnclear();
        for (const report of this.#deferredEvents?.splice(0) ?? []) report();
        if (!this.#isPaused) this.#backend.resume();
      }),
    );
  }

  /** Ends the backend because the era is unclear for now; the client's retry may find it. */
  #endUnclear(): void {
    this.#replaced = this.#backend.close();
    const detail =
      'The server refused initialize with an error that modern servers send, but did not send a valid answer to server/discover.';
    this.#events.onEnd({ reason: 'failed', detail });
  }

  #translate(): void {
    const { message, headers } = this.#opening as Opening;
    this.#replaced = this.#backend.close();
    this.#backend = this.#server.openTranslated(this.#events, this.#options);
    if (this.#isPaused) this.#backend.pause();
    this.#backend.send(message, headers);
  }
}

/** Error codes of the modern era for a request without an envelope, or with an unknown method. */
const modernCodes: ReadonlySet<unknown> = new Set([methodNotFound, ...modernErrors]);

/** True for an error that modern servers give to `initialize`, and legacy servers hardly ever. */
function isModernRefusal(refusal: Message): boolean {
  return modernCodes.has(errorCodeIn(refusal.text));
}

/** True for an error that rules out a legacy era: there is no `initialize`, or no revision that has it. */
function rulesOutLegacy(refusal: Message): boolean {
  const code = errorCodeIn(refusal.text);
  if (code === methodNotFound) return true;
  const supported = versionsAt(refusal.text, ['error', 'data', 'supported']);
  if (code !== modernErrorCodes.unsupportedVersion || supported === undefined) return false;
  return !supported.some(isLegacyRevision);
}
