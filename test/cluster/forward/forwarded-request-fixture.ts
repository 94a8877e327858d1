import type { ClientOperation } from '../../../src/cluster/forward/client-operation.ts';
import { ForwardedRequest } from '../../../src/cluster/forward/forwarded-request.ts';
import type { FailedAttempt, SessionOwnerLocation } from '../../../src/cluster/forward/forwarding-host.ts';
import type { MessageToOwner } from '../../../src/cluster/link/peer-messages.ts';
import type { SendOutcome } from '../../../src/cluster/link/send-queue.ts';
import { type EventId, parseEventId } from '../../../src/protocol/wire/event-id.ts';
import { createLoggedBatch, createMessageBatch } from '../../../src/reply/event-batch.ts';
import type { Reply } from '../../../src/reply/reply.ts';
import type { ClientPost, SessionHandle } from '../../../src/session/session-handle.ts';
import { readMessage } from '../../support/fake-backend.ts';
import { createFakeReply } from '../../support/fake-reply.ts';

interface ExchangeFixtureOptions {
  /** Who holds the session, at each question in turn; the last one for ever. `here`: this instance. */
  readonly owners?: readonly string[];
  readonly admits?: boolean;
  /** Whether an owner that seemed lost lives. */
  readonly isAlive?: boolean;
  /** What becomes of each request letter in turn; `posted` if not said. */
  readonly posts?: readonly SendOutcome[];
  /** What a replay reaches; where it began if not said. */
  readonly replayed?: EventId | 'complete';
  /** A GET gets its head after this time; never if not said. */
  readonly earlyStreamMs?: number;
  /** As the host has it. */
  readonly retryMsOfPriming?: number | undefined;
  /** It is not known of letters how often they were posted; else the first one sent has the number 101. */
  readonly isPostedTwice?: boolean;
}

/** One exchange, number 5, with everything around it in the test's hand. */
export function createExchange(
  wanted: ClientOperation,
  {
    owners = ['o1'],
    admits = true,
    isAlive = false,
    posts = [],
    replayed,
    earlyStreamMs = 2 ** 30,
    retryMsOfPriming,
    isPostedTwice = false,
  }: ExchangeFixtureOptions = {},
) {
  const reply = createFakeReply();
  const sent: { to: string; letter: MessageToOwner; body: string[] }[] = [];
  const asked: (FailedAttempt | undefined)[] = [];
  const replays: EventId[] = [];
  const outcomes = [...posts];
  const posted: { post: ClientPost; reply: Reply }[] = [];
  let over = 0;
  let n = 4;
  const handle: SessionHandle = {
    post: (post, to) => void posted.push({ post, reply: to }),
    listen: () => undefined,
    remove: (to) => to.answer({ kind: 'removed' }),
  };
  const exchange = new ForwardedRequest('k', wanted, reply, {
    earlyStreamMs,
    retryMsOfPriming,
    admit: async () => admits,
    async locate(_reply, failed): Promise<SessionOwnerLocation> {
      asked.push(failed);
      const owner = owners[Math.min(asked.length, owners.length) - 1] ?? 'none';
      if (owner === 'none') return owner;
      return owner === 'here' ? { here: handle } : { instance: owner, epoch: 1 };
    },
    async send(to, letter, body = [], onNumber) {
      sent.push({ to, letter, body: body.map((part) => part.toString()) });
      const isRequest = letter.kind === 'post' || letter.kind === 'listen' || letter.kind === 'remove';
      const outcome = (isRequest ? outcomes.shift() : undefined) ?? 'posted';
      if (outcome === 'posted' && !isPostedTwice) onNumber?.(100 + sent.length);
      return outcome;
    },
    async replay(after) {
      replays.push(after);
      return replayed ?? after;
    },
    isAlive: async () => isAlive,
    name: () => 'this',
    renumber: () => ++n,
    onOver: () => {
      over += 1;
    },
  });
  exchange.begin();
  return {
    exchange,
    reply,
    sent,
    asked,
    replays,
    here: { posts: posted },
    over: () => over,
    run: () => exchange.run(),
  };
}

export const postOf = (messages: readonly unknown[], { isBatch = false } = {}): ClientOperation => ({
  kind: 'post',
  messages: messages.map(readMessage),
  isBatch,
});

export const listenAfter = (after = '3.5-1'): ClientOperation => ({ kind: 'listen', after: parseEventId(after) });

export const bytes = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));

/** A message of a stream comes from an owner, under an event id if it has a place. */
export function chunk(
  exchange: ForwardedRequest,
  from: string,
  message: unknown,
  at?: string,
  { n = exchange.n, isLast = false } = {},
): void {
  const data = bytes(message);
  const batch =
    at === undefined ? createMessageBatch(data) : createLoggedBatch([{ ...(parseEventId(at) as EventId), data }], 0);
  exchange.receive(from, { kind: 'chunk', n, ...(at !== undefined && { at }), ...(isLast && { isLast }) }, batch.text);
}

export const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
