import { noHeaders } from '../protocol/http/forwarded-headers.ts';
import type { Message } from '../protocol/message/message.ts';
import { detach } from '../util/boundary.ts';
import { TimeLimit } from '../util/timing/time-limit.ts';
import type {
  Backend,
  BackendEnd,
  BackendEvents,
  CloseOptions,
  OpenBackend,
  OpenOptions,
  QueuedMessage,
  Sent,
} from './backend.ts';

/** The transports that an http(s):// server can have. */
export type WebTransport = 'http' | 'sse';

/** Options of the detection. */
export interface DetectOptions {
  /**
   * How to open a backend by each transport. If the server has the other transport, the backend ends with
   * `isOtherTransport`.
   */
  readonly open: Readonly<Record<WebTransport, OpenBackend>>;
  /** The server has answered by this transport; called only when the transport is new or has changed. */
  onFound(transport: WebTransport): void;
}

/**
 * How long a server may leave `initialize` unanswered before its HTTP+SSE stream is requested as well. Some servers never
 * answer a POST to the path of their stream. A host that wakes up answers both, and the first answer counts.
 */
const maxSilenceMs = 5_000;

/**
 * Opens backends of a server by its actual transport (2025-11-25, basic/transports, "Backwards Compatibility"). It
 * tries Streamable HTTP by the POST of `initialize`, and HTTP+SSE if the server refuses it in any way, or does not answer
 * for a while. The transport found is kept for the next backend. From then on only a refusal that is typical of a server
 * without this transport is a reason to try the other one: the server may be away, or require credentials.
 */
export function createTransportDetector({ open, onFound }: DetectOptions): OpenBackend {
  let known: WebTransport | undefined;
  const noteTransport = (transport: WebTransport): void => {
    if (transport === known) return;
    known = transport;
    onFound(transport);
  };
  return (events, options) =>
    // Only Streamable HTTP has sessions that can be resumed.
    options?.resume === undefined
      ? new EitherTransport(known, open, { events, options, onAnswer: noteTransport })
      : open.http(events, options);
}

interface EitherOptions {
  readonly events: BackendEvents;
  readonly options: OpenOptions | undefined;
  onAnswer(transport: WebTransport): void;
}

/** One try of a transport: its backend, and how it ended. */
interface Try {
  readonly transport: WebTransport;
  readonly backend: Backend;
  end?: BackendEnd;
}

/**
 * Opens a backend by one transport, and by the other one if the server does not seem to have the first. The first answer
 * decides. No sent message is lost.
 */
class EitherTransport implements Backend {
  readonly #open: DetectOptions['open'];
  readonly #options: EitherOptions;
  readonly #isKnown: boolean;
  readonly #first: Try;
  #second: Try | undefined;
  /** The transport that has answered. */
  #answered: Try | undefined;
  /** Only `initialize` is kept: nothing else is sent before its answer. */
  #sent: QueuedMessage[] = [];
  #isPaused = false;
  #isOver = false;
  #silence: TimeLimit | undefined;

  constructor(known: WebTransport | undefined, open: DetectOptions['open'], options: EitherOptions) {
    this.#open = open;
    this.#options = options;
    this.#isKnown = known !== undefined;
    this.#first = this.#try(known ?? 'http');
    if (!this.#isKnown) this.#silence = new TimeLimit(() => this.#trySecond(), maxSilenceMs);
  }

  get #current(): Backend {
    return (this.#answered ?? this.#second ?? this.#first).backend;
  }

  get #living(): readonly Backend[] {
    if (this.#answered !== undefined) return [this.#answered.backend];
    return this.#second === undefined ? [this.#first.backend] : [this.#first.backend, this.#second.backend];
  }

  #try(transport: WebTransport): Try {
    const { events, options } = this.#options;
    const isCurrent = (): boolean => this.#answered === undefined || this.#answered === tried;
    const tried: Try = {
      transport,
      backend: this.#open[transport](
        {
          onMessages: (messages, relatedRequests) => {
            if (!isCurrent() || this.#isOver) return;
            if (this.#answered === undefined) this.#decide(tried);
            events.onMessages(messages, relatedRequests);
          },
          onNoise: (text, more) => isCurrent() && events.onNoise(text, more),
          onUnanswered: (ids, reason, isFinal) => isCurrent() && events.onUnanswered(ids, reason, isFinal),
          onState: (state) => isCurrent() && events.onState?.(state),
          onEnd: (end) => this.#handleEnd(tried, end),
        },
        options,
      ),
    };
    return tried;
  }

  #decide(tried: Try): void {
    this.#answered = tried;
    this.#sent = [];
    this.#silence?.clear();
    const other = tried === this.#first ? this.#second : this.#first;
    if (other !== undefined) detach('backend', other.backend.close());
    this.#options.onAnswer(tried.transport);
  }

  #trySecond(): void {
    if (this.#second !== undefined || this.#answered !== undefined || this.#isOver) return;
    this.#second = this.#try(this.#first.transport === 'http' ? 'sse' : 'http');
    const { backend } = this.#second;
    if (this.#isPaused) backend.pause();
    for (const { message, headers } of this.#sent) backend.send(message, headers);
  }

  #handleEnd(tried: Try, end: BackendEnd): void {
    if (this.#answered !== undefined && this.#answered !== tried) return;
    tried.end = end;
    if (this.#isOver || this.#answered === tried) return this.#finish(end);
    const isOther = end.isOtherTransport === true || (end.isOddAnswer === true && !this.#isKnown);
    if (tried === this.#first && isOther) this.#trySecond();
    const second = this.#second;
    if (second === undefined) return this.#finish(end);
    if (this.#first.end === undefined || second.end === undefined) return;
    this.#finish(endOfBoth(this.#first, second));
  }

  #finish(end: BackendEnd): void {
    this.#silence?.clear();
    if (this.#answered === undefined && this.#hasEnded) return;
    this.#hasEnded = true;
    this.#options.events.onEnd(end);
  }

  #hasEnded = false;

  get pid(): number | undefined {
    return this.#current.pid;
  }

  send(message: Message, headers = noHeaders): Sent {
    if (this.#answered === undefined) this.#sent.push({ message, headers });
    const results = this.#living.map((backend) => backend.send(message, headers));
    return results.find((result) => result !== 'ended') ?? 'ended';
  }

  pause(): void {
    this.#isPaused = true;
    for (const backend of this.#living) backend.pause();
  }

  resume(): void {
    this.#isPaused = false;
    for (const backend of this.#living) backend.resume();
  }

  async close(how?: CloseOptions): Promise<void> {
    this.#isOver = true;
    this.#silence?.clear();
    await Promise.all(this.#living.map((backend) => backend.close(how)));
  }
}

const transportAdvice = 'If you know the transport of the server, set --transport http or --transport sse.';

/** The end of a server that answered by neither transport. Its flags are those of the transport that it may have. */
function endOfBoth(first: Try, second: Try): BackendEnd {
  const [http, sse] = (first.transport === 'http' ? [first.end, second.end] : [second.end, first.end]) as [
    BackendEnd,
    BackendEnd,
  ];
  // A server that clearly has one transport only failed by that.
  if (http.isOtherTransport && !sse.isOtherTransport && !sse.isOddAnswer) return sse;
  if (sse.isOtherTransport && !http.isOtherTransport && !http.isOddAnswer) return http;
  const { isUnauthorized, noToken } = http.isUnauthorized || http.noToken ? http : sse;
  // The same cause by both transports, such as refused credentials, does not depend on the transport.
  const detail = http.detail === sse.detail ? http.detail : `${http.detail} ${sse.detail} ${transportAdvice}`;
  return { reason: 'failed', detail, isUnauthorized, noToken, isOddAnswer: http.isOddAnswer, status: http.status };
}
