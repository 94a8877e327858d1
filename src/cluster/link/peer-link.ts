import type { Instances, MailboxMessage } from '../../store/instances.ts';
import { contain, detach, reportFault } from '../../util/boundary.ts';
import { BoundedMap } from '../../util/bounded-map.ts';
import type { DirectChannel } from './direct-connection.ts';
import {
  type DecodedPeerMessage,
  decodePeerMessage,
  encodePeerMessage,
  type MessageToIngress,
  type MessageToOwner,
  type PeerMessageHead,
} from './peer-messages.ts';
import { type SendOutcome, SendQueue } from './send-queue.ts';

/** The address in a message's head: `n` names a request at its ingress, and `key` a session at its owner. */
export interface PeerMessageAddress {
  readonly kind: string;
  readonly n?: unknown;
  readonly key?: unknown;
}

/** Options of `PeerLink`. */
export interface PeerLinkOptions {
  readonly instances: Instances;
  /** The name of this instance now. */
  name(): string;
  /** How long a client request waits for room in a mailbox. */
  readonly requestWaitMs: number;
  readonly mailboxMaxBytes: number;
  /** The direct connection to a peer, if one can be used now. */
  direct?(peer: string): DirectChannel | undefined;
  /** A message arrived. */
  onMessage(from: string, head: MessageToOwner | MessageToIngress, body: Buffer): void;
  /**
   * A message arrived that has a readable head but cannot be handled: its version is later, or its handling failed. A
   * client that waits for it must not wait any longer.
   */
  onUnreadable(from: string, head: PeerMessageAddress, why: 'version' | 'fault'): void;
  /** Messages between this instance and a peer were lost. Requests that wait for the peer must not wait any longer. */
  onLoss(peer: string): void;
}

/** A larger message is sent in parts. Otherwise it could block a connection, and with it the lease, for long. */
const partBytes = 256 * 1024;

/**
 * The pause before the sender of an unreadable message is told. It asks again at once, perhaps with another unreadable
 * message.
 */
const unreadPauseMs = 1_000;

/** How many senders are remembered, lost ones included. Each restart of an instance is a new name (P8). */
const maxSenders = 1_000;

/**
 * How many receivers are remembered. `Cluster` forgets dead ones within a minute. In a cluster whose instances keep
 * restarting, this bounds the rest (P8).
 */
const maxReceivers = 1_000;

/**
 * Exchanges messages with other instances. Each message is sent in order and handled once, and both sides notice a
 * loss.
 */
export class PeerLink {
  readonly #options: PeerLinkOptions;
  /** The most recent receiver is last. */
  readonly #queues = new BoundedMap<string, SendQueue>(maxReceivers);
  /**
   * The number of the first message to a new receiver. It is above the last number of every receiver that was forgotten
   * for want of room. A receiver takes a lower number for a repeat. It takes a higher number for a hole, and the
   * waiting requests are sent again.
   */
  #firstNumber = 1;
  /**
   * The number of the next message to each receiver that was forgotten. In a Redis that lost its data an instance seems
   * dead, but it goes on under its name for a moment, and still knows the numbers that it has received.
   */
  readonly #nextNumbers = new BoundedMap<string, number>(maxReceivers);
  /** The number of the last message of each sender; the most recent sender is last. */
  readonly #lastNumbers = new BoundedMap<string, number>(maxSenders);
  /** The parts of an incomplete message, by sender. `Cluster` forgets a sender that died before its last part (P8). */
  readonly #parts = new Map<string, Buffer[]>();
  readonly #closing = new AbortController();

  constructor(options: PeerLinkOptions) {
    this.#options = options;
  }

  /**
   * Sends a message. Never rejects.
   * @param onNumber receives the number that `withdraw` returns for this message; not called if the message may have
   *   been enqueued twice
   */
  send(
    to: string,
    head: PeerMessageHead,
    body: readonly Buffer[] = [],
    onNumber?: (number: number) => void,
  ): Promise<SendOutcome> {
    // A client request waits for room only for a limited time. A loss of any other message would leave the peer
    // uninformed.
    const isRequest = head.kind === 'post' || head.kind === 'listen' || head.kind === 'remove';
    const waitMs = isRequest ? this.#options.requestWaitMs : undefined;
    const isNotice = head.kind === 'hole' || head.kind === 'hello';
    return this.#queueTo(to).send(splitIntoParts(encodePeerMessage(head, ...body)), waitMs, isNotice, onNumber);
  }

  /** Withdraws the messages that a lost instance has not received from here, and returns their numbers. */
  withdraw(to: string): Promise<readonly number[]> {
    return this.#options.instances.withdraw(to, this.#options.name());
  }

  /**
   * Receives messages from a direct connection, numbered from `first` on. False if messages before them are missing: the
   * store may still bring those, so this is no loss yet, and the peer sends all of them through the store.
   */
  receiveDirect(from: string, first: number, contents: readonly Buffer[]): boolean {
    if (first > (this.#lastNumbers.get(from) ?? 0) + 1) return false;
    for (const [index, content] of contents.entries()) this.receive({ from, number: first + index, content });
    return true;
  }

  /** Receives a delivered message. A repeat is dropped, and a hole in the numbers is reported to both sides. */
  receive({ from, number, content }: MailboxMessage): void {
    const last = this.#lastNumbers.get(from) ?? 0;
    if (number <= last) return;
    this.#lastNumbers.set(from, number);
    if (number > last + 1) {
      this.#parts.delete(from);
      this.#options.onLoss(from);
      detach('cluster', this.send(from, { kind: 'hole' }));
    }
    this.#handle(from, content);
  }

  #handle(from: string, content: Buffer): void {
    const message = this.#decode(from, content);
    if (message === undefined) return;
    const { head, body, isKnown } = message;
    // These three are the same in every version. The version of a message in parts is that of the whole message.
    if (head.kind === 'part') this.#assemble(from, head, body);
    else if (head.kind === 'hole') this.#options.onLoss(from);
    else if (head.kind === 'hello') return;
    else if (!isKnown) this.#options.onUnreadable(from, head, 'version');
    else this.#deliver(from, head, body);
  }

  /**
   * Undefined for an unreadable message. It has no request number to answer, so its sender is asked to repeat all open
   * requests.
   */
  #decode(from: string, content: Buffer): DecodedPeerMessage | undefined {
    try {
      return decodePeerMessage(content);
    } catch (cause) {
      const requestRepeat = (): void => detach('cluster', this.send(from, { kind: 'hole' }));
      setTimeout(requestRepeat, unreadPauseMs).unref();
      reportFault('cluster', cause);
      return undefined;
    }
  }

  #deliver(from: string, head: MessageToOwner | MessageToIngress, body: Buffer): void {
    contain(
      'cluster',
      () => this.#options.onMessage(from, head, body),
      () => this.#options.onUnreadable(from, head, 'fault'),
    );
  }

  #assemble(from: string, { index, isLast }: PartHead, body: Buffer): void {
    const parts = index === 0 ? [] : (this.#parts.get(from) ?? []);
    this.#parts.delete(from);
    if (parts.length !== index) return; // the first part was lost, which has been reported
    parts.push(body);
    if (isLast) this.#handle(from, Buffer.concat(parts));
    else this.#parts.set(from, parts);
  }

  /** The instances of which something is kept: those that messages were sent to, and senders of incomplete messages. */
  get peers(): readonly string[] {
    return [...new Set([...this.#queues.keys(), ...this.#parts.keys()])];
  }

  /** Makes every receiver look for holes, since the store may have lost the last messages. */
  sendHello(): void {
    for (const to of [...this.#queues.keys()]) detach('cluster', this.send(to, { kind: 'hello' }));
  }

  /**
   * Forgets a dead peer. The numbers are kept, so that a repeated delivery is still recognised as a repeat, and a later
   * message is not taken for one.
   */
  forget(peer: string): void {
    const queue = this.#queues.get(peer);
    if (queue !== undefined) this.#forgetQueue(peer, queue);
    this.#queues.delete(peer);
    this.#parts.delete(peer);
  }

  #forgetQueue(peer: string, queue: SendQueue): void {
    const dropped = this.#nextNumbers.makeRoomFor(peer);
    if (dropped !== undefined) this.#firstNumber = Math.max(this.#firstNumber, dropped[1]);
    this.#nextNumbers.set(peer, queue.next + queue.waiting);
    queue.close();
  }

  /** This instance has another name. Numbers start again, and messages under the old name are lost. */
  restart(): void {
    for (const queue of this.#queues.values()) queue.close();
    this.#queues.clear();
    this.#firstNumber = 1;
    this.#nextNumbers.clear();
    this.#lastNumbers.clear();
    this.#parts.clear();
  }

  close(): void {
    this.#closing.abort();
    this.restart();
  }

  #queueTo(to: string): SendQueue {
    const known = this.#queues.get(to);
    if (known !== undefined && !known.isClosed) {
      this.#queues.set(to, known);
      return known;
    }
    const { instances, name, mailboxMaxBytes, direct } = this.#options;
    const { signal } = this.#closing;
    const first = known?.next ?? this.#nextNumbers.get(to) ?? this.#firstNumber;
    const queue = new SendQueue({
      instances,
      from: name(),
      to,
      first,
      maxBytes: mailboxMaxBytes,
      signal,
      direct: () => direct?.(to),
    });
    const dropped = this.#queues.makeRoomFor(to);
    if (dropped !== undefined) {
      this.#forgetQueue(...dropped);
      this.#parts.delete(dropped[0]);
    }
    this.#queues.set(to, queue);
    return queue;
  }
}

type PartHead = Extract<PeerMessageHead, { readonly kind: 'part' }>;

function splitIntoParts(message: Buffer): readonly Buffer[] {
  if (message.length <= partBytes) return [message];
  const count = Math.ceil(message.length / partBytes);
  return Array.from({ length: count }, (_, index) => {
    const body = message.subarray(index * partBytes, (index + 1) * partBytes);
    return encodePeerMessage({ kind: 'part', index, isLast: index === count - 1 }, body);
  });
}
