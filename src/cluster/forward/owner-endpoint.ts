import type { Reason } from '../../protocol/faults.ts';
import type { Accepts } from '../../protocol/http/media-types.ts';
import { type Message, readBody } from '../../protocol/message/message.ts';
import { parseEventId } from '../../protocol/wire/event-id.ts';
import type { SessionHandle } from '../../session/session-handle.ts';
import type { ForwardedContext, MessageToIngress, MessageToOwner } from '../link/peer-messages.ts';
import { RemoteReply, type RemoteReplyContext } from './remote-reply.ts';

/** What the owner's desk needs of its instance. */
export interface OwnerEndpointOptions {
  /** The session as it is held here, if it is. */
  findHere(key: string): SessionHandle | undefined;
  /** True while a session that is not to be had is being opened, taken over or ended here. */
  isChanging(key: string): boolean;
  send(to: string, letter: MessageToIngress, body?: Buffer): void;
}

const streamOnly: Accepts = { json: false, sse: true };

/** Where letters of ingresses arrive at the owner: each request gets a reply that travels back by letter. */
export class OwnerEndpoint {
  readonly #options: OwnerEndpointOptions;
  /** By ingress, then by the request's number there. */
  readonly #replies = new Map<string, Map<number, RemoteReply>>();

  constructor(options: OwnerEndpointOptions) {
    this.#options = options;
  }

  /** The instances that wait for replies. */
  get ingresses(): Iterable<string> {
    return this.#replies.keys();
  }

  receive(from: string, letter: MessageToOwner, body: Buffer): void {
    if (letter.kind === 'gone')
      return this.#replies
        .get(from)
        ?.get(letter.n)
        ?.close(letter.asksAgain ?? false);
    if (letter.kind === 'read') return this.#replies.get(from)?.get(letter.n)?.read(letter.bytes);
    const { n, key } = letter;
    const brought = broughtIn(letter);
    const session = this.#options.findHere(key);
    if (session === undefined) {
      const isEnding = this.#options.isChanging(key);
      return this.#options.send(from, { kind: 'moved', n, ...(isEnding && { isEnding }) });
    }
    if (letter.kind === 'remove') session.remove(this.#replyTo(from, n, { accepts: streamOnly, ...brought }));
    else if (letter.kind === 'listen') {
      const after = letter.after === undefined ? undefined : parseEventId(letter.after + (letter.requests ?? ''));
      const asked = { accepts: streamOnly, ...brought, isContinued: letter.continues };
      session.listen(after, this.#replyTo(from, n, asked));
    } else {
      const { isBatch, accepts, again, earlier, lengths, group } = letter;
      const reply = this.#replyTo(from, n, { accepts, earlier, ...brought });
      session.post({ messages: messagesOf(body, lengths), isBatch, again, ...(group && { group }) }, reply);
    }
  }

  /** A request of an ingress could not be read, or a fault was stopped at it: its client is answered, and nobody else. */
  refuse(from: string, n: number, reason: Reason): void {
    const reply = this.#replies.get(from)?.get(n);
    if (reply === undefined) this.#options.send(from, { kind: 'fault', n, reason, id: null });
    else reply.fault(reason, null);
  }

  /** The way to this ingress is lost: whether somebody waits there still is not known. */
  ingressLost(ingress: string): void {
    const replies = this.#replies.get(ingress);
    this.#replies.delete(ingress);
    for (const reply of replies?.values() ?? []) reply.close(true);
  }

  #replyTo(from: string, n: number, asked: Omit<RemoteReplyContext, 'name'>): RemoteReply {
    const replies = this.#replies.get(from) ?? new Map<number, RemoteReply>();
    this.#replies.set(from, replies);
    const forget = (): void => {
      replies.delete(n);
      if (replies.size === 0 && this.#replies.get(from) === replies) this.#replies.delete(from);
    };
    const reply = new RemoteReply(
      n,
      { ...asked, name: attemptId(from, n) },
      {
        send: (letter, body) => this.#options.send(from, letter, body),
        forget,
      },
    );
    reply.onGone(forget);
    replies.set(n, reply);
    return reply;
  }
}

/** What the request of an ingress is called at its owner, whatever the ingress is called by then. */
export const attemptId = (ingress: string, n: number): string => `${ingress} ${n}`;

const broughtIn = ({
  forwarded,
  scopes,
  needs,
  requestId,
}: ForwardedContext): Pick<RemoteReplyContext, keyof ForwardedContext> => ({
  forwarded,
  scopes: scopes && new Set(scopes),
  needs,
  requestId,
});

/** The messages that an ingress has read already; an ingress passes on nothing else. */
function messagesOf(body: Buffer, lengths: readonly number[]): readonly Message[] {
  let from = 0;
  return lengths.map((length) => {
    const read = readBody(body.subarray(from, from + length), Number.POSITIVE_INFINITY);
    from += length;
    const [first] = read.ok ? read.messages : [];
    if (!first?.ok) throw new Error('an instance passed on what is no message');
    return first.message;
  });
}
