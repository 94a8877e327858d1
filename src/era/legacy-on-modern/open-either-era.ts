import type { Backend, BackendEnd, BackendEvents, OpenBackend, RequestIds } from '../../backend/backend.ts';
import type { RequestId } from '../../protocol/faults.ts';
import type { ForwardedHeaders } from '../../protocol/http/forwarded-headers.ts';
import { errorCodeIn } from '../../protocol/json/splice.ts';
import { type Message, readOne, readResponse } from '../../protocol/message/message.ts';
import { readDiscovery, versionsAt } from '../../protocol/modern/discovery.ts';
import { legacyRevisions } from '../../protocol/revisions.ts';
import { detach } from '../../util/boundary.ts';
import type { EraLookup } from './server-side.ts';

/** How a server is opened for a session where its era is not known. */
export interface EitherEraOptions {
  /** A backend that is spoken to as its client speaks. */
  readonly direct: OpenBackend;
  /** A backend for a server of the modern era. */
  readonly translated: OpenBackend;
  readonly eras: EraLookup;
  /** The server is reached over HTTP: where it refuses `initialize` by a status, its backend counts as not started. */
  readonly isOverHttp: boolean;
  /** The server has opened a session of the legacy era by itself; told with each. */
  onLegacy(): void;
  /** A server that has left `initialize` without an answer for so long is asked for its era, in milliseconds. */
  readonly silentMs: number;
}

/**
 * Opens backends of a server for legacy sessions, whatever its era (docs/decisions/0025). A server of both eras serves them
 * by itself, so the client's `initialize` goes to it as it is. Only where the server refuses that, or ends on it, its era is
 * asked for, and if it is modern, `initialize` goes to a translator instead: the client does not notice. A refusal that says
 * that there is no legacy era is remembered, until a translator ends by itself; and so is a modern server's silence on two in a
 * row: the first can come of a slow start. A refusal as of the modern era whose server does not say of which era it is, is no
 * answer for the client: the backend has not started, and the client tries again.
 */
export function openEitherEra(options: EitherEraOptions): OpenBackend {
  const { direct, translated, eras, isOverHttp, onLegacy, silentMs } = options;
  let hasNoLegacy = false;
  let wasSilent = false;
  return (events, opening) => {
    if (opening?.resume !== undefined) return direct(events, opening);
    const openTranslated = (told: BackendEvents): Backend =>
      translated(
        {
          ...told,
          onEnd(end) {
            if (end.reason !== 'closed') hasNoLegacy = false;
            told.onEnd(end);
          },
        },
        opening,
      );
    if (hasNoLegacy) return openTranslated(events);
    return new UndecidedBackend(events, {
      openDirect: (told) => direct(told, opening),
      openTranslated,
      ...{ eras, silentMs },
      refusedBy: ({ reason }) => reason === 'exited' || (isOverHttp && reason === 'failed'),
      onNoLegacy: () => {
        hasNoLegacy = true;
      },
      onAnswered: () => {
        wasSilent = false;
        onLegacy();
      },
      onSilent: () => {
        hasNoLegacy ||= wasSilent;
        wasSilent = true;
      },
    });
  };
}

interface UndecidedOptions {
  openDirect(events: BackendEvents): Backend;
  openTranslated(events: BackendEvents): Backend;
  readonly eras: EraLookup;
  readonly silentMs: number;
  /** True for an end that may be the server's way to refuse `initialize`. */
  refusedBy(end: BackendEnd): boolean;
  /** The server says that it has no legacy era. */
  onNoLegacy(): void;
  /** The server has opened a session of the legacy era. */
  onAnswered(): void;
  /** The server is modern, and says nothing to `initialize`. */
  onSilent(): void;
}

/** The client's `initialize`. */
interface Opening {
  readonly message: Uint8Array;
  readonly headers: ForwardedHeaders | undefined;
  readonly id: RequestId;
}

/** What takes the place of a result of `initialize`: what the server answered, or that it ended, or lost the answer. */
type Refusal = Message | 'ended' | 'unanswered';

/** A backend of which the answer to `initialize` decides of which era it is. Nothing else is sent to it before. */
class UndecidedBackend implements Backend {
  readonly #options: UndecidedOptions;
  readonly #events: BackendEvents;
  #backend: Backend;
  #state: 'opening' | 'asking' | 'decided' = 'opening';
  #opening: Opening | undefined;
  /** What the backend did while its era was asked for: told if it keeps its session. */
  #untold: (() => void)[] = [];
  #isPaused = false;
  #isClosed = false;
  #silenceTimer: NodeJS.Timeout | undefined;
  /** The backend that a translator has replaced, as long as it ends. */
  #replaced: Promise<void> | undefined;

  constructor(events: BackendEvents, options: UndecidedOptions) {
    this.#events = events;
    this.#options = options;
    this.#backend = options.openDirect({
      onMessages: (lines, of) => this.#take(lines, of),
      onUnanswered: (ids, reason, isFinal) => {
        const isRefusal = this.#opening !== undefined && ids.includes(this.#opening.id);
        this.#hear(isRefusal ? 'unanswered' : undefined, () => events.onUnanswered(ids, reason, isFinal));
      },
      onState: (state) => this.#hear(undefined, () => events.onState?.(state)),
      onEnd: (end) =>
        this.#hear(options.refusedBy(end) ? 'ended' : undefined, () => {
          this.#decide();
          events.onEnd(end);
        }),
    });
  }

  get pid(): number | undefined {
    return this.#backend.pid;
  }

  send(message: Uint8Array, headers?: ForwardedHeaders): 'sent' | 'full' | 'ended' {
    if (this.#opening === undefined) {
      const read = readOne(Buffer.from(message.buffer, message.byteOffset, message.byteLength));
      if (read?.method === 'initialize') {
        this.#opening = { message, headers, id: read.id as RequestId };
        this.#silenceTimer = setTimeout(() => detach('session', this.#doubt()), this.#options.silentMs);
      }
    }
    return this.#backend.send(message, headers);
  }

  pause(): void {
    this.#isPaused = true;
    this.#backend.pause();
  }

  resume(): void {
    this.#isPaused = false;
    if (this.#state !== 'asking') this.#backend.resume();
  }

  async close(how?: { readonly isForGood?: boolean }): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#silenceTimer);
    await Promise.all([this.#backend.close(how), this.#replaced]);
  }

  #take(lines: Buffer[], of: RequestIds | undefined): void {
    if (this.#state === 'decided' && this.#replaced === undefined) return this.#events.onMessages(lines, of);
    const tell = (): void => this.#events.onMessages(lines, of);
    if (this.#state !== 'opening') return this.#hear(undefined, tell);
    const { id } = this.#opening ?? {};
    const answer = lines.map(readResponse).find((response) => response !== undefined && response.id === id);
    if (answer?.memberRanges.message?.keys.includes('result')) {
      this.#decide();
      this.#options.onAnswered();
    }
    this.#hear(answer, tell);
  }

  /** Something that the backend did. A refusal of `initialize` has the era asked for, and waits for that with what follows. */
  #hear(refusal: Refusal | undefined, tell: () => void): void {
    if (this.#replaced !== undefined) return;
    const canAsk = this.#state === 'opening' && this.#opening !== undefined && !this.#isClosed;
    if (refusal !== undefined && canAsk) this.#ask(refusal);
    if (this.#state === 'asking') this.#untold.push(tell);
    else tell();
  }

  /** It does not answer, or not yet: a server of the modern era will not. What it does meanwhile decides all the same. */
  async #doubt(): Promise<void> {
    const era = await this.#options.eras.findEra(this.#opening?.headers);
    if (era !== 'modern' || this.#state !== 'opening' || this.#isClosed) return;
    this.#decide();
    this.#options.onSilent();
    this.#translate();
  }

  #decide(): void {
    this.#state = 'decided';
    clearTimeout(this.#silenceTimer);
  }

  #ask(refusal: Refusal): void {
    this.#state = 'asking';
    // It may take a minute to find out, and a server that writes meanwhile must not fill the memory (P8).
    this.#backend.pause();
    const answer = typeof refusal === 'string' ? undefined : refusal;
    const isDoubted = answer !== undefined && isAsOfModern(answer);
    const seen = isDoubted ? 'modern' : refusal === 'ended' ? 'end' : undefined;
    detach(
      'session',
      this.#options.eras.findEra(this.#opening?.headers, seen).then((era) => {
        this.#decide();
        const isModern = era === 'modern' && !this.#isClosed;
        if (isModern && answer !== undefined && saysNoLegacy(answer)) this.#options.onNoLegacy();
        if (isModern) return this.#translate();
        const isLegacy = era === 'legacy' && (answer === undefined || readDiscovery(answer).era === 'legacy');
        if (isDoubted && !isLegacy && !this.#isClosed) return this.#giveUp();
        for (const tell of this.#untold.splice(0)) tell();
        if (!this.#isPaused) this.#backend.resume();
      }),
    );
  }

  /** Nobody knows now what the server needs; that may be otherwise in a moment. */
  #giveUp(): void {
    this.#replaced = this.#backend.close();
    const detail = 'The server refused initialize like a modern server, but did not answer server/discover like one.';
    this.#events.onEnd({ reason: 'failed', detail });
  }

  #translate(): void {
    const { message, headers } = this.#opening as Opening;
    this.#replaced = this.#backend.close();
    this.#backend = this.#options.openTranslated(this.#events);
    if (this.#isPaused) this.#backend.pause();
    this.#backend.send(message, headers);
  }
}

const noSuchMethod = -32601;
const unsupportedVersion = -32022;

/** Codes that the modern era has for requests without what it wants to know of each, and for methods that it has no more. */
const modernCodes: ReadonlySet<unknown> = new Set([noSuchMethod, -32020, -32021, unsupportedVersion]);

/** True for an error that a server of the modern era has for `initialize`; one of the legacy era hardly ever. */
function isAsOfModern(refusal: Message): boolean {
  return modernCodes.has(errorCodeIn(refusal.text));
}

/** True for an error that is not about this one request: there is no `initialize`, or no revision that has one. */
function saysNoLegacy(refusal: Message): boolean {
  const code = errorCodeIn(refusal.text);
  if (code === noSuchMethod) return true;
  const supported = versionsAt(refusal.text, ['error', 'data', 'supported']);
  if (code !== unsupportedVersion || supported === undefined) return false;
  return !supported.some((version) => (legacyRevisions as readonly unknown[]).includes(version));
}
