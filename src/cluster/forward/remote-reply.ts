import { challengeTo, isUpstreamRefusal } from '../../protocol/http/upstream-challenge.ts';
import { formatEventId } from '../../protocol/wire/event-id.ts';
import type {
  CompleteAnswer,
  EventSink,
  FaultAnswer,
  Headers,
  Reply,
  RequestAttempt,
  RequestFacts,
} from '../../reply/reply.ts';
import type { MessageToIngress } from '../link/peer-messages.ts';

/** A stream pauses at this many bytes that the client has not read (P8). */
const windowBytes = 256 * 1024;

/** Carries the replies to the ingress. */
export interface PeerReplyChannel {
  send(message: MessageToIngress, body?: Buffer): void;
  /** Called after the last message for the request. */
  forget(): void;
}

/** The context of a request as its ingress reports it. */
export interface RemoteReplyContext {
  readonly request: RequestFacts;
  readonly isContinued?: boolean;
  /** The id of this attempt; see `RequestAttempt`. */
  readonly name: string;
  readonly earlier?: readonly string[] | undefined;
}

/** The owner's side of a response that another instance sends. Each answer travels as a peer message. */
export class RemoteReply implements Reply, RequestAttempt {
  readonly request: RequestFacts;
  readonly isContinued: boolean;
  readonly id: string;
  readonly previousIds: readonly string[];
  readonly #n: number;
  readonly #channel: PeerReplyChannel;
  #isGone = false;
  #isDetached = false;
  #isObsolete = false;
  #isDone = false;
  #unreadBytes = 0;
  readonly #goneListeners: (() => void)[] = [];
  readonly #givenUpListeners: (() => void)[] = [];
  readonly #closeListeners: (() => void)[] = [];
  readonly #drainListeners: (() => void)[] = [];

  constructor(n: number, context: RemoteReplyContext, channel: PeerReplyChannel) {
    const { request, isContinued = false, name, earlier = [] } = context;
    this.id = name;
    this.previousIds = earlier;
    this.#n = n;
    this.request = request;
    this.isContinued = isContinued;
    this.#channel = channel;
  }

  get attempt(): RequestAttempt {
    return this;
  }

  get isDetached(): boolean {
    return this.#isDetached;
  }

  get isGone(): boolean {
    return this.#isGone;
  }

  get isObsolete(): boolean {
    return this.#isObsolete;
  }

  onGivenUp(listener: () => void): void {
    this.#givenUpListeners.push(listener);
  }

  onGone(listener: () => void): void {
    this.#goneListeners.push(listener);
  }

  answer(answer: CompleteAnswer): void {
    if (answer.kind === 'fault') return this.#finish({ ...this.#withChallenge(answer), n: this.#n });
    if (answer.kind !== 'json') return this.#finish({ kind: answer.kind, n: this.#n });
    const { text, ...head } = answer;
    this.#finish({ ...head, n: this.#n }, text);
  }

  /** The ingress makes a header of the challenge, and removes it from the data. */
  #withChallenge(answer: FaultAnswer): FaultAnswer {
    const { forwarded } = this.request;
    const wwwAuthenticate = isUpstreamRefusal(answer.reason) ? challengeTo(forwarded)?.wwwAuthenticate : undefined;
    return wwwAuthenticate === undefined ? answer : { ...answer, data: { ...answer.data, wwwAuthenticate } };
  }

  stream(headers?: Headers): EventSink {
    const n = this.#n;
    this.#channel.send({ kind: 'head', n, ...(headers && { headers }) });
    return {
      write: (batch) => {
        if (this.#isDone || this.#isGone) return true;
        const { text, at, isLast } = batch;
        this.#unreadBytes += text.length;
        const position = at && { at: formatEventId(at.stream, at) };
        this.#channel.send({ kind: 'chunk', n, ...position, ...(isLast && { isLast }) }, text);
        return this.#unreadBytes < windowBytes;
      },
      onDrain: (listener) => {
        this.#drainListeners.push(listener);
      },
      onClose: (listener) => {
        this.#closeListeners.push(listener);
      },
      handOver: () => this.#finish({ kind: 'moved', n }),
      end: () => this.#finish({ kind: 'finish', n }),
      cut: () => this.#finish({ kind: 'cut', n }),
    };
  }

  /** The client has read bytes of the stream. */
  read(bytes: number): void {
    const wasFull = this.#unreadBytes >= windowBytes;
    this.#unreadBytes -= bytes;
    if (wasFull && this.#unreadBytes < windowBytes) for (const listener of this.#drainListeners) listener();
  }

  /**
   * The client's connection is gone or, if `isDetached`, only the connection to its instance.
   * @param isObsolete the client has its answer
   */
  close(isDetached: boolean, isObsolete = false): void {
    const isGivenUp = this.#isDetached && !isDetached;
    this.#isObsolete ||= isObsolete;
    if (isGivenUp) {
      this.#isDetached = false;
      for (const listener of this.#givenUpListeners.splice(0)) listener();
    }
    if (this.#isGone) return;
    this.#isGone = true;
    this.#isDetached = isDetached;
    for (const listener of [...this.#goneListeners.splice(0), ...this.#closeListeners.splice(0)]) listener();
  }

  #finish(message: MessageToIngress, body?: Buffer): void {
    if (this.#isDone) return;
    this.#isDone = true;
    this.#channel.send(message, body);
    this.#channel.forget();
    for (const listener of this.#closeListeners.splice(0)) listener();
  }
}
