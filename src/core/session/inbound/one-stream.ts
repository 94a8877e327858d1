import type { OpeningAnswer } from '../../call/call-answer.ts';
import type { RequestId } from '../../protocol/faults.ts';
import { nextOwnId } from '../../protocol/ids/own-ids.ts';
import { accepted, type CompleteAnswer, faultAnswer, type Reply } from '../../reply/reply.ts';
import { getStream } from '../../store/event-log.ts';
import { eventText } from '../outbound/logged-target.ts';
import type { SessionLog } from '../outbound/session-log.ts';
import type { SessionCore } from '../session-core.ts';

/** The id of an `initialize` that the gateway sends for a client that sends none. Its answer is not for the client. */
export const ownInitializeId = nextOwnId();

/**
 * The answer to `initialize` for a client that gets everything on one stream, over HTTP+SSE or on a WebSocket. It goes to
 * that stream, and the request is only told whether the session exists.
 */
export function openingOnStream(session: SessionCore, log: SessionLog, id: RequestId, reply: Reply): OpeningAnswer {
  let isAnswered = false;
  const answer = (what: CompleteAnswer): void => {
    if (isAnswered) return;
    isAnswered = true;
    reply.answer(what);
  };
  return {
    stream: undefined,
    hasStream: false, // earlier server messages are kept for the GET stream, within its limits
    message: ({ text }) => {
      log.add(getStream, text, false);
      return true;
    },
    response: (response) => {
      const text = eventText(response, session.limits.maxEventBytes);
      if (id !== ownInitializeId) log.add(getStream, text, false);
      answer(accepted);
    },
    refused: ({ text }) => answer({ kind: 'json', text }),
    fault: (reason) => answer({ ...faultAnswer(reason, id), isReported: true }),
  };
}
