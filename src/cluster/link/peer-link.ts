import type { Instances, MailboxMessage } from '../../store/instances.ts';
import { contain, detach, reportFault } from '../../util/boundary.ts';
import {
  type DecodedPeerMessage,
  decodePeerMessage,
  encodePeerMessage,
  type MessageToIngress,
  type MessageToOwner,
  type PeerMessageHead,
} from './peer-messages.ts';
import { type SendOutcome, SendQueue } from './send-queue.ts';

/** What of a letter says whom it is for: `n` names a request at its ingress, and `key` a session at its owner. */
export interface PeerMessageAddress {
  readonly kind: string;
  readonly n?: unknown;
  readonly key?: unknown;
}

/** What the mail needs. */
export interface PeerLinkOptions {
  readonly instances: Instances;
  /** The name of this instance now. */
  name(): string;
  /** How long a request of a client waits for room in a mailbox. */
  readonly requestWaitMs: number;
  readonly mailboxMaxBytes: number;
  /** A letter came. */
  onMessage(from: string, head: MessageToOwner | MessageToIngress, body: Buffer): void;
  /**
   * A letter came whose head can be read, and that cannot be acted on: it is of a later version, or a fault was stopped at it.
   * Whoever waits for what it asks or answers must not wait any longer.
   */
  onUnreadable(from: string, head: PeerMessageAddress, why: 'version' | 'fault'): void;
  /** Letters between this instance and another one were lost: what waits for it here must not wait any longer. */
  onLoss(peer: string): void;
}

/** A larger letter goes in parts, so that none of them keeps a connection, and with it the lease, waiting for long. */
const partBytes = 256 * 1024;

/** The pause before the sender of what is no letter is told: it asks again at once, and what it sends may be no letter again. */
const unreadPauseMs = 1_000;

/** Senders that are remembered, those lost among them: each restart of an instance is a new name (P8). */
const maxSenders = 1_000;

/**
 * Instances that letters go to at once. Those that are dead are forgotten within a minute (`Cluster`); this bounds what a cluster
 * in trouble, whose instances start again and again, leaves here meanwhile (P8).
 */
const maxReceivers = 1_000;

/** Letters to other instances and from them: sent in order, taken once each, and a loss is noticed on both sides. */
export class PeerLink {
  readonly #options: PeerLinkOptions;
  /** Who was written to last is last. */
  readonly #outboxes = new Map<string, SendQueue>();
  /**
   * The number of the first letter to a new receiver: above the last number of each one that was forgotten for want of room. A
   * receiver takes a lower number for a repeat. It takes a higher one for a hole, and what waits for it is asked again.
   */
  #first = 1;
  /** The number of the last letter of each sender; who wrote last is last. */
  readonly #received = new Map<string, number>();
  /** What came of a letter in parts, by sender. */
  readonly #parts = new Map<string, Buffer[]>();
  readonly #closing = new AbortController();

  constructor(options: PeerLinkOptions) {
    this.#options = options;
  }

  /**
   * Sends a letter. Never rejects.
   * @param onNumber is told by which number `withdraw` knows the letter; not told if it may have been posted twice
   */
  send(
    to: string,
    head: PeerMessageHead,
    body: readonly Buffer[] = [],
    onNumber?: (number: number) => void,
  ): Promise<SendOutcome> {
    // A request waits for room only so long; anything else would leave the other side in the dark.
    const isRequest = head.kind === 'post' || head.kind === 'listen' || head.kind === 'remove';
    const waitMs = isRequest ? this.#options.requestWaitMs : undefined;
    const isNotice = head.kind === 'hole' || head.kind === 'hello';
    return this.#outboxTo(to).send(partsOf(encodePeerMessage(head, ...body)), waitMs, isNotice, onNumber);
  }

  /** Takes back what a lost instance was not given of the letters from here; their numbers. */
  withdraw(to: string): Promise<readonly number[]> {
    return this.#options.instances.withdraw(to, this.#options.name());
  }

  /** Takes a letter as it was delivered: a repeat is dropped, and a hole in the numbers is told to both sides. */
  receive({ from, number, content }: MailboxMessage): void {
    const last = this.#received.get(from) ?? 0;
    if (number <= last) return;
    this.#note(from, number);
    if (number > last + 1) {
      this.#parts.delete(from);
      this.#options.onLoss(from);
      detach('cluster', this.send(from, { kind: 'hole' }));
    }
    this.#open(from, content);
  }

  #note(from: string, number: number): void {
    this.#received.delete(from); // so that the order is that of the last letters
    this.#received.set(from, number);
    const [oldest] = this.#received.keys();
    if (this.#received.size > maxSenders && oldest !== undefined) this.#received.delete(oldest);
  }

  #open(from: string, content: Buffer): void {
    const letter = this.#read(from, content);
    if (letter === undefined) return;
    const { head, body, isKnown } = letter;
    if (!isKnown) this.#options.onUnreadable(from, head, 'version');
    else if (head.kind === 'part') this.#assemble(from, head, body);
    else if (head.kind === 'hole') this.#options.onLoss(from);
    else if (head.kind !== 'hello') this.#act(from, head, body);
  }

  /** Undefined for what is no letter: nobody can be answered by a number, so the sender asks again for all that it waits for. */
  #read(from: string, content: Buffer): DecodedPeerMessage | undefined {
    try {
      return decodePeerMessage(content);
    } catch (cause) {
      const tellSoon = (): void => detach('cluster', this.send(from, { kind: 'hole' }));
      setTimeout(tellSoon, unreadPauseMs).unref();
      reportFault('cluster', cause);
      return undefined;
    }
  }

  #act(from: string, head: MessageToOwner | MessageToIngress, body: Buffer): void {
    contain(
      'cluster',
      () => this.#options.onMessage(from, head, body),
      () => this.#options.onUnreadable(from, head, 'fault'),
    );
  }

  #assemble(from: string, { index, isLast }: Part, body: Buffer): void {
    const parts = index === 0 ? [] : (this.#parts.get(from) ?? []);
    this.#parts.delete(from);
    if (parts.length !== index) return; // its beginning was lost, which has been told
    parts.push(body);
    if (isLast) this.#open(from, Buffer.concat(parts));
    else this.#parts.set(from, parts);
  }

  /** The instances that were written to and are not forgotten. */
  get receivers(): readonly string[] {
    return [...this.#outboxes.keys()];
  }

  /** Makes every receiver look for holes: the store may have lost what was sent last. */
  sendHello(): void {
    for (const to of this.receivers) detach('cluster', this.send(to, { kind: 'hello' }));
  }

  /** An instance is no more. What was taken of it may be delivered once more, and is a repeat then too. */
  forget(peer: string): void {
    this.#outboxes.get(peer)?.close();
    this.#outboxes.delete(peer);
    this.#parts.delete(peer);
  }

  /** This instance has another name: numbers start again, and what was sent under the old one is lost. */
  restart(): void {
    for (const outbox of this.#outboxes.values()) outbox.close();
    this.#outboxes.clear();
    this.#first = 1;
    this.#received.clear();
    this.#parts.clear();
  }

  close(): void {
    this.#closing.abort();
    this.restart();
  }

  #outboxTo(to: string): SendQueue {
    const known = this.#outboxes.get(to);
    this.#outboxes.delete(to); // so that the order is that of the last letters
    if (known !== undefined && !known.isClosed) {
      this.#outboxes.set(to, known);
      return known;
    }
    const { instances, name, mailboxMaxBytes } = this.#options;
    const { signal } = this.#closing;
    const first = known?.next ?? this.#first;
    const outbox = new SendQueue({ instances, from: name(), to, first, maxBytes: mailboxMaxBytes, signal });
    this.#outboxes.set(to, outbox);
    if (this.#outboxes.size > maxReceivers) this.#forgetOldest();
    return outbox;
  }

  #forgetOldest(): void {
    const [oldest] = this.#outboxes;
    if (oldest === undefined) return;
    const [receiver, outbox] = oldest;
    this.#first = Math.max(this.#first, outbox.next + outbox.waiting);
    this.forget(receiver);
  }
}

type Part = Extract<PeerMessageHead, { readonly kind: 'part' }>;

function partsOf(letter: Buffer): readonly Buffer[] {
  if (letter.length <= partBytes) return [letter];
  const count = Math.ceil(letter.length / partBytes);
  return Array.from({ length: count }, (_, index) => {
    const body = letter.subarray(index * partBytes, (index + 1) * partBytes);
    return encodePeerMessage({ kind: 'part', index, isLast: index === count - 1 }, body);
  });
}
