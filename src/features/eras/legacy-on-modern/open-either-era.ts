// src/features/eras/legacy-on-modern: serves legacy sessions at servers of the modern era.

import type {
  Backend,
  BackendEnd,
  BackendEvents,
  CloseOptions,
  OpenBackend,
  OpenOptions,
  RequestIds,
} from '../../../core/backend/backend.ts';
import { Interceptor, linkBackends } from '../../../core/backend/link/link.ts';
import type { Reason, RequestId } from '../../../core/protocol/faults.ts';
import type { ForwardedHeaders } from '../../../core/protocol/http/forwarded-headers.ts';
import { errorCodeIn } from '../../../core/protocol/json.ts';
import { isLegacyRevision, modernErrors } from '../../../core/protocol/known-revisions.ts';
import { type Message, responsesIn } from '../../../core/protocol/message/message.ts';
import { readDiscovery, versionsAt } from '../../../core/protocol/modern/discovery.ts';
import { methodNotFound, modernErrorCodes } from '../../../core/protocol/revisions.ts';
import { detach } from '../../../core/util/boundary.ts';
import { TimeLimit } from '../../../core/util/timing/time-limit.ts';
import type { ServerEra } from '../modern/server-era.ts';

/** The ways to open backends for the legacy sessions of a server. */
export interface EitherEraOptions {
  /** Opens a backend that gets the client's messages as they are. */
  readonly direct: OpenBackend;
  /** Opens a translator to a modern server. */
  readonly translated: OpenBackend;
  readonly era: SessionEra;
  /** True for a server over HTTP: if it refuses `initialize` by a status, its backend counts as not started. */
  readonly isOverHttp: boolean;
  /** Called when the server itself has opened a legacy session, if its era was unknown before. */
  onLegacy(): void;
  /** How long `initialize` may stay unanswered before the era is probed, in milliseconds. */
  readonly silentMs: number;
}

/** What sessions need to know of the era of their server, and what they have seen. */
export type SessionEra = Pick<
  ServerEra,
  'isConfigured' | 'find' | 'forSession' | 'noteLegacy' | 'noteNoLegacy' | 'noteSilence' | 'noteTranslatorLost'
>;

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
  const { direct, era } = options;
  const translated = era.isConfigured
    ? options.translated
    : linkBackends(options.translated, [() => new TranslatorWatch(era)]);
  return (events, opening) => {
    const how = era.forSession(opening?.resume !== undefined);
    if (how === 'undecided') return new UndecidedBackend({ ...options, translated }, events, opening);
    return (how === 'direct' ? direct : translated)(events, opening);
  };
}

/** Notes the end of a translator. */
class TranslatorWatch extends Interceptor {
  readonly #era: SessionEra;

  constructor(era: SessionEra) {
    super();
    this.#era = era;
  }

  override onOver({ reason }: BackendEnd): void {
    if (reason !== 'closed') this.#era.noteTranslatorLost();
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
  readonly #server: EitherEraOptions;
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

  constructor(server: EitherEraOptions, events: BackendEvents, options: OpenOptions | undefined) {
    this.#server = server;
    this.#events = events;
    this.#options = options;
    this.#backend = server.direct(this, options);
  }

  get pid(): number | undefined {
    return this.#backend.pid;
  }

  send(message: Message, headers?: ForwardedHeaders): 'sent' | 'full' | 'ended' {
    if (this.#state === 'opening' && message.method === 'initialize') {
      this.#opening = { message, headers, id: message.id as RequestId };
      this.#silenceTimer = new TimeLimit(() => detach('session', this.#probeWhenSilent()), this.#server.silentMs);
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
      this.#server.era.noteLegacy();
      this.#server.onLegacy();
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
    this.#handleEvent(this.#isRefusal(end) ? 'ended' : undefined, () => {
      this.#decide();
      this.#events.onEnd(end);
    });
  }

  /** True if the end of the backend may be a refusal of `initialize`. */
  #isRefusal({ reason }: BackendEnd): boolean {
    return reason === 'exited' || (this.#server.isOverHttp && reason === 'failed');
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
    const era = await this.#server.era.find(this.#opening?.headers);
    if (era !== 'modern' || this.#state !== 'opening' || this.#isClosed) return;
    this.#decide();
    this.#server.era.noteSilence();
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
      this.#server.era.find(this.#opening?.headers, evidence).then((era) => {
        this.#decide();
        const isModern = era === 'modern' && !this.#isClosed;
        if (isModern && answer !== undefined && rulesOutLegacy(answer)) this.#server.era.noteNoLegacy();
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
    this.#backend = this.#server.translated(this.#events, this.#options);
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
