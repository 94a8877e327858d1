import type { Reason } from '../../protocol/faults.ts';
import type { ForwardedHeaders } from '../../protocol/http/forwarded-headers.ts';
import type { Message } from '../../protocol/message/message.ts';
import type { GroupRequestOptions, SessionHandle } from '../../session/session-handle.ts';
import { TimeLimit } from '../../util/timing/time-limit.ts';
import { SessionReply } from './session-reply.ts';

/** Sends a session, as its client, messages that need no answer. Resolves with the reason if they were refused. */
export function sendNotifications(
  handle: SessionHandle,
  messages: readonly Message[],
  group: GroupRequestOptions | undefined,
  forwarded: ForwardedHeaders | undefined,
): Promise<Reason | undefined> {
  return new Promise((resolve) => {
    const accept = (): void => resolve(undefined);
    const reply = new SessionReply({ message: accept, fault: resolve, accepted: accept, ended: accept }, forwarded);
    handle.post({ messages, isBatch: false, ...(group && { group }) }, reply);
  });
}

/** How long a request of the gateway's own waits for its response. */
const ownTimeoutMs = 10_000;

/** Sends a session, as its client, a request. Resolves with the response; undefined if none came. */
export function sendRequest(
  handle: SessionHandle,
  request: Message,
  forwarded: ForwardedHeaders | undefined,
): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const settle = (response?: Buffer): void => {
      limit.clear();
      resolve(response);
    };
    const limit = new TimeLimit(() => settle(), ownTimeoutMs);
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
