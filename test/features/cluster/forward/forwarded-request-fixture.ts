import { type EventId, parseEventId } from '../../../../src/core/protocol/wire/event-id.ts';
import { createLoggedBatch, createMessageBatch } from '../../../../src/core/reply/event-batch.ts';
import type { Reply } from '../../../../src/core/reply/reply.ts';
import type { ClientPost, SessionHandle } from '../../../../src/core/session/session-handle.ts';
import type { ClientOperation } from '../../../../src/features/cluster/forward/client-operation.ts';
import {
  type FailedAttempt,
  ForwardedRequest,
  type OwnerRoute,
  type SessionLocation,
} from '../../../../src/features/cluster/forward/forwarded-request.ts';
import type { PeerListener, PeerRequest } from '../../../../src/features/cluster/peers/peer-request.ts';
import { readMessage } from '../../../support/fake-backend.ts';
import { createFakeReply } from '../../../support/fake-reply.ts';
import { turn } from '../../../support/wait-for.ts';

interface ForwardingFixtureOptions {
  /** Who holds the session, at each question in turn; the last one for ever. `here`: this instance. */
  readonly owners?: readonly string[];
  readonly admits?: boolean;
  /** What is known of the owner at the first questions, before `owners`. */
  readonly unknown?: readonly SessionLocation[];
  /** What a replay reaches; where it began if not said. */
  readonly replayed?: EventId | 'complete';
  /** A GET gets its head after this time; never if not said. */
  readonly earlyStreamMs?: number;
  /** As the host has it. */
  readonly retryMsOfPriming?: number | undefined;
  readonly mayRepeat?: boolean;
  readonly waitMs?: number;
}

/** A request to an owner, whose answer the test gives. */
export interface SentRequest {
  readonly to: string;
  readonly request: PeerRequest;
  readonly body: string | undefined;
  readonly owner: PeerListener;
  isAborted: boolean;
  /** How often the ingress has asked for more. */
  resumed: number;
}

/** One forwarded request, with everything around it in the test's hand. */
export function createForwarded(
  wanted: ClientOperation,
  {
    owners = ['o1'],
    admits = true,
    unknown = [],
    replayed,
    earlyStreamMs = 2 ** 30,
    retryMsOfPriming,
    mayRepeat = true,
    waitMs = 8_000,
  }: ForwardingFixtureOptions = {},
) {
  const reply = createFakeReply();
  const sent: SentRequest[] = [];
  const asked: (FailedAttempt | undefined)[] = [];
  const replays: EventId[] = [];
  const posted: { post: ClientPost; reply: Reply }[] = [];
  let over = 0;
  const handle: SessionHandle = {
    post: (post, to) => void posted.push({ post, reply: to }),
    listen: () => undefined,
    remove: (to) => to.answer({ kind: 'removed' }),
  };
  const waiting = [...unknown];
  const route: OwnerRoute = {
    retryMsOfPriming,
    mayRepeat,
    admit: async () => (admits ? 'yes' : { fault: 'unknown_session' }),
    async locate(failed) {
      const known = waiting.shift();
      if (known !== undefined) return known;
      asked.push(failed);
      const owner = owners[Math.min(asked.length, owners.length) - 1] ?? 'none';
      if (owner === 'none') return { fault: 'unknown_session' };
      return owner === 'here' ? { here: handle } : { instance: owner, epoch: 1 };
    },
    async replay(after) {
      replays.push(after);
      return replayed ?? after;
    },
  };
  const forwarded = new ForwardedRequest('k', wanted, reply, route, {
    earlyStreamMs,
    waitMs,
    isClosed: () => false,
    ask(to, asked, body, owner) {
      const request: PeerRequest = JSON.parse(JSON.stringify(asked)); // as it travels
      const one: SentRequest = { to, request, body: body?.toString(), owner, isAborted: false, resumed: 0 };
      sent.push(one);
      return {
        isSent: true,
        resume: () => {
          one.resumed += 1;
        },
        abort: () => {
          one.isAborted = true;
        },
      };
    },
  });
  const run = async (): Promise<void> => {
    await forwarded.run();
    over += 1;
  };
  /** The newest request to an owner. */
  const newest = (): SentRequest => sent.at(-1) as SentRequest;
  return {
    ...{ forwarded, reply, sent, asked, replays, newest, here: { posts: posted } },
    over: () => over,
    /** Begins, and resolves when the first owner was asked. */
    async begin(): Promise<{ readonly done: Promise<void> }> {
      const done = run();
      await turn();
      return { done };
    },
    run,
  };
}

export const postOf = (messages: readonly unknown[], { isBatch = false } = {}): ClientOperation => ({
  kind: 'post',
  messages: messages.map(readMessage),
  isBatch,
});

export const listenAfter = (after = '3.5-1'): ClientOperation => ({ kind: 'listen', after: parseEventId(after) });

export const bytes = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));

/**
 * The text of an event.
 * @param isLast its id names no request, as that of the event that ends a stream
 */
export function eventText(message: unknown, at?: string, requests?: string, isLast = false): Buffer {
  const data = bytes(message);
  if (at === undefined) return createMessageBatch(data).text;
  return createLoggedBatch([{ ...(parseEventId(at) as EventId), data, ...(isLast && { last: true }) }], 0, requests)
    .text;
}
