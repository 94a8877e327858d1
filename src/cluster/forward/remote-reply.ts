import type { Reason, RequestId } from '../../protocol/faults.ts';
import type { ForwardedHeaders } from '../../protocol/http/forwarded-headers.ts';
import type { Accepts } from '../../protocol/http/media-types.ts';
import type { EventSink, Headers, Reply, RequestAttempt } from '../../reply/reply.ts';
import type { MessageToIngress } from '../link/peer-messages.ts';

/** More bytes than this that the client has not taken yet, and the stream is told to wait (P8). */
const windowBytes = 256 * 1024;

/** What carries the replies to the ingress. */
export interface PeerReplyChannel {
  send(letter: MessageToIngress, body?: Buffer): void;
  /** Nothing more will be sent for the request. */
  forget(): void;
}

/** What the ingress says of a request beside its messages. */
export type RemoteReplyContext = Pick<
  Reply,
  'accepts' | 'forwarded' | 'scopes' | 'needs' | 'requestId' | 'isContinued'
> & {
  /** See `Asking`. */
  readonly name: string;
  readonly earlier?: readonly string[] | undefined;
};

/** The owner's side of a response that another instance sends: what is answered here travels by letter. */
export class RemoteReply implements Reply, RequestAttempt {
  readonly accepts: Accepts;
  readonly forwarded: ForwardedHeaders | undefined;
  readonly scopes: ReadonlySet<string> | undefined;
  readonly needs: readonly string[] | undefined;
  readonly requestId: string | undefined;
  readonly isContinued: boolean;
  readonly id: string;
  readonly previousIds: readonly string[];
  readonly #n: number;
  readonly #carrier: PeerReplyChannel;
  #isGone = false;
  #isParted = false;
  #isDone = false;
  #unread = 0;
  readonly #gone: (() => void)[] = [];
  readonly #closed: (() => void)[] = [];
  readonly #drained: (() => void)[] = [];

  constructor(n: number, asked: RemoteReplyContext, carrier: PeerReplyChannel) {
    const { accepts, forwarded, scopes, needs, requestId, isContinued = false, name, earlier = [] } = asked;
    this.id = name;
    this.previousIds = earlier;
    this.#n = n;
    this.accepts = accepts;
    this.forwarded = forwarded;
    this.scopes = scopes;
    this.needs = needs;
    this.requestId = requestId;
    this.isContinued = isContinued;
    this.#carrier = carrier;
  }

  get attempt(): RequestAttempt {
    return this;
  }

  get isDetached(): boolean {
    return this.#isParted;
  }

  get isGone(): boolean {
    return this.#isGone;
  }

  onGone(listener: () => void): void {
    this.#gone.push(listener);
  }

  json(text: Buffer, headers?: Headers): void {
    this.#finish({ kind: 'json', n: this.#n, ...(headers && { headers }) }, text);
  }

  accepted(): void {
    this.#finish({ kind: 'accepted', n: this.#n });
  }

  nothing(): void {
    this.#finish({ kind: 'nothing', n: this.#n });
  }

  removed(): void {
    this.#finish({ kind: 'removed', n: this.#n });
  }

  fault(reason: Reason, id: RequestId | null, data?: Record<string, unknown>): void {
    this.#finish({ kind: 'fault', n: this.#n, reason, id, ...(data && { data }) });
  }

  stream(headers?: Headers): EventSink {
    const n = this.#n;
    this.#carrier.send({ kind: 'head', n, ...(headers && { headers }) });
    return {
      write: (text, at) => {
        if (this.#isDone || this.#isGone) return true;
        this.#unread += text.length;
        this.#carrier.send({ kind: 'chunk', n, ...(at !== undefined && { at }) }, text);
        return this.#unread < windowBytes;
      },
      onDrain: (listener) => {
        this.#drained.push(listener);
      },
      onClose: (listener) => {
        this.#closed.push(listener);
      },
      handOver: () => this.#finish({ kind: 'moved', n }),
      end: () => this.#finish({ kind: 'finish', n }),
      cut: () => this.#finish({ kind: 'cut', n }),
    };
  }

  /** The client has taken bytes of the stream. */
  read(bytes: number): void {
    const wasFull = this.#unread >= windowBytes;
    this.#unread -= bytes;
    if (wasFull && this.#unread < windowBytes) for (const listener of this.#drained) listener();
  }

  /** The client's connection is gone, or, where it `isParted`, the way to its instance. */
  close(isParted: boolean): void {
    if (this.#isGone) return;
    this.#isGone = true;
    this.#isParted = isParted;
    for (const listener of [...this.#gone.splice(0), ...this.#closed.splice(0)]) listener();
  }

  #finish(letter: MessageToIngress, body?: Buffer): void {
    if (this.#isDone) return;
    this.#isDone = true;
    this.#carrier.send(letter, body);
    this.#carrier.forget();
    for (const listener of this.#closed.splice(0)) listener();
  }
}
