import type { CompleteAnswer, EventSink, Headers } from '../../src/core/reply/reply.ts';
import type {
  Denial,
  PeerCall,
  PeerHost,
  PeerListener,
  PeerReply,
  PeerRequest,
  PeerTransport,
} from '../../src/features/cluster/peers/peer-request.ts';

/** How many bytes the owner may send that the ingress has not taken, as the buffers of a connection. */
const windowBytes = 256 * 1024;

/** Carries something to one end of the connection, in order; it may never arrive. */
export type Carry = (act: () => void) => void;

/** How things travel. */
export interface Carriers {
  readonly toOwner: Carry;
  readonly toIngress: Carry;
  /** The parts in which the text of events arrives; in one part by default. */
  split?(text: Buffer): readonly Buffer[];
}

/** One request between two instances of a test, without sockets. It behaves as a connection over HTTP does. */
export class PeerExchange implements PeerCall {
  isSent = false;
  readonly #listener: PeerListener;
  readonly #toOwner: Carry;
  readonly #toIngress: Carry;
  readonly #split: (text: Buffer) => readonly Buffer[];
  readonly #onOver: () => void;
  /** The two ends notice the end of the connection at different times. */
  #isOverAtIngress = false;
  #isOverAtOwner = false;
  #hasAnswered = false;
  #unreadBytes = 0;
  #isPaused = false;
  /** What has arrived while the ingress does not read. */
  readonly #held: (() => void)[] = [];
  readonly #drainListeners: (() => void)[] = [];
  readonly #goneListeners: (() => void)[] = [];
  readonly #closeListeners: (() => void)[] = [];

  constructor(listener: PeerListener, carry: Carriers, onOver: () => void = () => undefined) {
    this.#listener = listener;
    this.#toOwner = carry.toOwner;
    this.#toIngress = carry.toIngress;
    this.#split = carry.split ?? ((text) => [text]);
    this.#onOver = onOver;
  }

  /** Sends the request. */
  begin(host: PeerHost, request: PeerRequest, body: Buffer | undefined): void {
    this.isSent = true;
    // What travels is JSON, and loses what JSON loses.
    const received = JSON.parse(JSON.stringify(request)) as PeerRequest;
    this.#toOwner(() => {
      if (!this.#isOverAtOwner) host.serve(received, Buffer.from(body ?? ''), this.#replyTo(received));
    });
  }

  /** The ingress cannot send the request, or never gets an answer. */
  fail(): void {
    if (this.#isOverAtIngress) return;
    this.#endAtIngress();
    this.#listener.failed(this.isSent ? 'lost' : 'unsent');
  }

  /** The owner's end of the connection breaks. */
  leaveOwner(): void {
    if (this.#isOverAtOwner) return;
    this.#isOverAtOwner = true;
    const listeners = [...(this.#hasAnswered ? [] : this.#goneListeners.splice(0)), ...this.#closeListeners.splice(0)];
    for (const listener of listeners) listener();
  }

  resume(): void {
    this.#isPaused = false;
    while (!this.#isPaused && this.#held.length > 0) this.#held.shift()?.();
  }

  abort(): void {
    this.#endAtIngress();
    this.#toOwner(() => this.leaveOwner());
  }

  #endAtIngress(): void {
    this.#isOverAtIngress = true;
    this.#onOver();
  }

  /** Brings something to the ingress, behind what it has not read. */
  #bring(act: () => void): void {
    if (this.#isOverAtOwner) return;
    this.#toIngress(() => {
      const arrive = (): void => {
        if (!this.#isOverAtIngress) act();
      };
      if (this.#isPaused) this.#held.push(arrive);
      else arrive();
    });
  }

  #finish(act: () => void): void {
    if (this.#hasAnswered) return;
    this.#bring(() => {
      this.#endAtIngress();
      act();
    });
    this.#hasAnswered = true;
    queueMicrotask(() => this.leaveOwner());
  }

  #replyTo({ kind, request, ...rest }: PeerRequest): PeerReply {
    const isGone = (): boolean => this.#isOverAtOwner;
    return {
      request,
      isContinued: kind === 'listen' && 'continues' in rest && rest.continues === true,
      get isGone() {
        return isGone();
      },
      onGone: (listener) => void this.#goneListeners.push(listener),
      answer: (answer: CompleteAnswer) => this.#finish(() => this.#listener.answered(answer)),
      deny: (why: Denial) => this.#finish(() => this.#listener.denied(why)),
      stream: (headers) => this.#openStream(headers),
    };
  }

  #openStream(headers: Headers | undefined): EventSink {
    this.#bring(() => this.#listener.opened(headers));
    return {
      write: ({ text }) => {
        if (this.#hasAnswered) return true;
        this.#unreadBytes += text.length;
        for (const part of this.#split(text))
          this.#bring(() => {
            this.#isPaused = !this.#listener.received(part);
            this.#toOwner(() => this.#take(part.length));
          });
        return this.#unreadBytes < windowBytes;
      },
      onDrain: (listener) => void this.#drainListeners.push(listener),
      onClose: (listener) => void this.#closeListeners.push(listener),
      handOver: () => this.#finish(() => this.#listener.ended(true)),
      end: () => this.#finish(() => this.#listener.ended(false)),
      cut: () => {
        this.#toIngress(() => this.fail());
        queueMicrotask(() => this.leaveOwner());
      },
    };
  }

  #take(bytes: number): void {
    const wasFull = this.#unreadBytes >= windowBytes;
    this.#unreadBytes -= bytes;
    if (wasFull && this.#unreadBytes < windowBytes) for (const listener of this.#drainListeners) listener();
  }
}

/** Connects the instances of a test. */
export class PeerBus {
  readonly #hosts = new Set<PeerHost>();
  /** The instances that others cannot reach, and that reach no others. */
  readonly #cutOff = new Set<PeerHost>();
  readonly #open = new Map<PeerExchange, readonly PeerHost[]>();
  /** Those that have lost something: nothing of them arrives any more. */
  readonly #broken = new WeakSet<PeerExchange>();
  /** How many requests have been sent. */
  sent = 0;
  /** True: connections break before anything of an owner arrives. */
  losesAnswers = false;
  /** Changes the requests that are sent from now on. */
  rewrite: (request: PeerRequest) => PeerRequest = (request) => request;

  /** The way of one instance to the others. */
  transport(): PeerTransport & { readonly line: PeerLine } {
    let own: PeerHost | undefined;
    const others = (): PeerHost[] => [...this.#hosts].filter((host) => host !== own && !this.#cutOff.has(host));
    const isOff = (): boolean => own !== undefined && this.#cutOff.has(own);
    const openOf = (): PeerExchange[] =>
      [...this.#open].flatMap(([exchange, hosts]) => (own !== undefined && hosts.includes(own) ? [exchange] : []));
    const line: PeerLine = {
      cut: () => own && this.#cutOff.add(own),
      mend: () => {
        if (own === undefined || !this.#cutOff.delete(own)) return;
        for (const exchange of openOf()) if (this.#broken.has(exchange)) breakOff(exchange);
      },
      break: () => {
        for (const exchange of openOf()) breakOff(exchange);
      },
    };
    return {
      line,
      attach: (host) => {
        own = host;
        this.#hosts.add(host);
      },
      listen: async () => undefined,
      ask: (to, request, body, listener) => {
        const host = isOff() ? undefined : others().find((each) => each.name() === to);
        const carry: Carry = (act) => {
          if (isOff() || (host !== undefined && this.#cutOff.has(host))) this.#broken.add(exchange);
          if (!this.#broken.has(exchange)) queueMicrotask(act);
        };
        const toIngress: Carry = (act) => carry(this.losesAnswers ? () => breakOff(exchange) : act);
        const exchange: PeerExchange = new PeerExchange(listener, { toOwner: carry, toIngress }, () =>
          this.#open.delete(exchange),
        );
        if (host === undefined || own === undefined) queueMicrotask(() => exchange.fail());
        else {
          this.#open.set(exchange, [own, host]);
          this.sent += 1;
          exchange.begin(host, this.rewrite(request), body);
        }
        return exchange;
      },
      get states() {
        return { reachable: isOff() ? 0 : others().length, unreachable: [] };
      },
      get names() {
        return isOff() ? [] : others().map((host) => host.name());
      },
      publish: () => undefined,
      isRenamed: () => false,
      forget: () => undefined,
      close: async () => {
        if (own !== undefined) this.#hosts.delete(own);
        line.break();
      },
    };
  }
}

/** Both ends notice that the connection is lost. */
function breakOff(exchange: PeerExchange): void {
  exchange.fail();
  exchange.leaveOwner();
}

/** The connection of one instance to all others. */
export interface PeerLine {
  /** Nothing arrives any more, in either way, and nobody is told. */
  cut(): void;
  mend(): void;
  /** All open requests are cut off. */
  break(): void;
}
