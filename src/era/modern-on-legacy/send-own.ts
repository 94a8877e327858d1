import type { Reason } from '../../protocol/faults.ts';
import type { ForwardedHeaders } from '../../protocol/http/forwarded-headers.ts';
import type { Message } from '../../protocol/message/message.ts';
import type { GroupRequestOptions, SessionHandle } from '../../session/session-handle.ts';
import { SessionReply } from './session-reply.ts';

/** Tells a session, as its client, what needs no answer. Resolves with why it was not taken. */
export function sendNotifications(
  handle: SessionHandle,
  messages: readonly Message[],
  group: GroupRequestOptions | undefined,
  forwarded: ForwardedHeaders | undefined,
): Promise<Reason | undefined> {
  return new Promise((resolve) => {
    const done = (): void => resolve(undefined);
    const reply = new SessionReply({ message: done, fault: resolve, accepted: done, ended: done }, forwarded);
    handle.post({ messages, isBatch: false, ...(group && { group }) }, reply);
  });
}

/** A question of the gateway's own that is not answered in this time is given up. */
const ownTimeoutMs = 10_000;

/** Asks a session, as its client. Resolves with the response; undefined if none came. */
export function sendRequest(
  handle: SessionHandle,
  request: Message,
  forwarded: ForwardedHeaders | undefined,
): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const settle = (response?: Buffer): void => {
      clearTimeout(timer);
      resolve(response);
    };
    const timer = setTimeout(settle, ownTimeoutMs);
    const reply = new SessionReply(
      {
        message: ({ kind, text }) => {
          if (kind === 'response') settle(text);
        },
        fault: () => settle(),
        ended: () => settle(),
      },
      forwarded,
    );
    handle.post({ messages: [request], isBatch: false, group: { turnMs: 0 } }, reply);
  });
}
