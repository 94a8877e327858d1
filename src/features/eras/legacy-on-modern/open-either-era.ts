// src/features/eras/legacy-on-modern: serves legacy sessions at servers of the modern era.

import type {
  Backend,
  BackendEnd,
  BackendEvents,
  CloseOptions,
  OpenBackend,
  OpenOptions,
  QueuedMessage,
  RequestIds,
  Sent,
} from '../../../core/backend/backend.ts';
import { Interceptor, linkBackends } from '../../../core/backend/link/link.ts';
import { ReplaceableBackend } from '../../../core/backend/replaceable-backend.ts';
import type { Reason } from '../../../core/protocol/faults.ts';
import { type ForwardedHeaders, noHeaders } from '../../../core/protocol/http/forwarded-headers.ts';
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
  /** The era of the server, as far as it is known, and what sessions have seen of it. */
  readonly era: ServerEra;
  /** True for a server over HTTP: if it refuses `initialize` by a status, its backend counts as not started. */
  readonly isOverHttp: boolean;
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
  readonly #era: ServerEra;

  constructor(era: ServerEra) {
    super();
    this.#era = era;
  }

  override onOver({ reason }: BackendEnd): void {
    if (reason !== 'closed') this.#era.noteTranslatorLost();
  }
}

/** The event in place of a result of `initialize`: an error, the end of the server, or a lost answer. */
type Refusal = Message | 'ended' | 'unanswered';

/** A backend whose era is decided by the answer to `initialize`. Nothing else is sent before that answer. */
class UndecidedBackend extends ReplaceableBackend {
  readonly #server: EitherEraOptions;
  readonly #options: OpenOptions | undefined;
  #state: 'opening' | 'probing' | 'decided' = 'opening';
  /** The client's `initialize`; undefined before it, and once the era is decided. */
  #initialize: QueuedMessage | undefined;
  /** Events of the backend while its era is probed. They are reported if the backend keeps its session. */
  #deferredEvents: (() => void)[] | undefined;
  #silenceTimer: TimeLimit | undefined;

  constructor(server: EitherEraOptions, user: BackendEvents, options: OpenOptions | undefined) {
    super(user);
    this.#server = server;
    this.#options = options;
    this.backend = server.direct(this, options);
  }

  override send(message: Message, headers?: ForwardedHeaders): Sent {
    if (this.#state === 'opening' && message.method === 'initialize') {
      this.#initialize = { message, headers: headers ?? noHeaders };
      this.#silenceTimer = new TimeLimit(() => detach('session', this.#probeWhenSilent()), this.#server.silentMs);
    }
    return (this.backend as Backend).send(message, headers);
  }

  override resume(): void {
    if (this.#state === 'probing') this.isPaused = false;
    else super.resume();
  }

  override close(how?: CloseOptions): Promise<void> {
    this.#silenceTimer?.clear();
    return super.close(how);
  }

  override onMessages(messages: readonly Message[], requestIds?: RequestIds): void {
    if (this.#state === 'decided' && !this.isReplaced) return this.user.onMessages(messages, requestIds);
    const report = (): void => this.user.onMessages(messages, requestIds);
    if (this.#state !== 'opening') return this.#handleEvent(undefined, report);
    const id = this.#initialize?.message.id;
    const answer = responsesIn(messages).find((response) => response.id === id);
    if (answer?.isError === false) {
      this.#decide();
      this.#initialize = undefined; // the session keeps its own copy
      this.#server.era.noteLegacy();
    }
    this.#handleEvent(answer, report);
  }

  override onNoise(text: Buffer, more?: number): void {
    this.#handleEvent(undefined, () => this.user.onNoise(text, more));
  }

  override onUnanswered(ids: RequestIds, reason: Reason, isFinal?: boolean): void {
    const id = this.#initialize?.message.id;
    const isRefusal = id != null && ids.includes(id);
    this.#handleEvent(isRefusal ? 'unanswered' : undefined, () => this.user.onUnanswered(ids, reason, isFinal));
  }

  override onState(state: string): void {
    this.#handleEvent(undefined, () => this.user.onState?.(state));
  }

  override onEnd(end: BackendEnd): void {
    this.#handleEvent(this.#isRefusal(end) ? 'ended' : undefined, () => {
      this.#decide();
      this.user.onEnd(end);
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
    if (this.isReplaced) return;
    const canProbe = this.#state === 'opening' && this.#initialize !== undefined && !this.isClosed;
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
    const era = await this.#server.era.find(this.#initialize?.headers);
    if (era !== 'modern' || this.#state !== 'opening' || this.isClosed) return;
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
    this.backend?.pause();
    const answer = typeof refusal === 'string' ? undefined : refusal;
    const isDoubted = answer !== undefined && isModernRefusal(answer);
    const evidence = isDoubted ? 'modern' : refusal === 'ended' ? 'end' : undefined;
    detach(
      'session',
      this.#server.era.find(this.#initialize?.headers, evidence).then((era) => {
        this.#decide();
        const isModern = era === 'modern' && !this.isClosed;
        if (isModern && answer !== undefined && rulesOutLegacy(answer)) this.#server.era.noteNoLegacy();
        if (isModern) return this.#translate();
        const isLegacy = era === 'legacy' && (answer === undefined || readDiscovery(answer).era === 'legacy');
        if (isDoubted && !isLegacy && !this.isClosed) return this.#endUnclear();
        for (const report of this.#deferredEvents?.splice(0) ?? []) report();
        if (!this.isPaused) this.backend?.resume();
      }),
    );
  }

  /** Ends the backend because the era is unclear for now; the client's retry may find it. */
  #endUnclear(): void {
    this.leave();
    const detail =
      'The server refused initialize with an error that modern servers send, but did not send a valid answer to server/discover.';
    this.user.onEnd({ reason: 'failed', detail });
  }

  #translate(): void {
    const { translated } = this.#server;
    this.replace((user) => translated(user, this.#options), [this.#initialize as QueuedMessage]);
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
