import type { Answer, AnswerOptions } from '../../call/answer.ts';
import type { OpeningAnswer } from '../../call/call-answer.ts';
import type { RequestId } from '../../protocol/faults.ts';
import { nextOwnId } from '../../protocol/ids/own-ids.ts';
import { accepted, type CompleteAnswer, faultAnswer, type Reply } from '../../reply/reply.ts';
import { getStream } from '../../store/event-log.ts';
import { answerOnStream, eventText } from '../outbound/logged-target.ts';
import type { SessionLog } from '../outbound/session-log.ts';
import type { SessionCore } from '../session-core.ts';

/** The id of an `initialize` that the gateway sends for a client that sends none. Its answer is not for the client. */
export const ownInitializeId = nextOwnId();

/**
 * The answers to a client that gets everything on one stream, over HTTP+SSE or on a WebSocket. They go to that stream,
 * and the request is only told that it was accepted.
 */
export class OneStream {
  readonly #session: SessionCore;
  readonly #log: SessionLog;

  constructor(session: SessionCore, log: SessionLog) {
    this.#session = session;
    this.#log = log;
  }

  /** The answer to the requests of one POST. */
  answer({ ids, renumbered }: Pick<AnswerOptions, 'ids' | 'renumbered'>): Answer {
    return answerOnStream(this.#session, this.#log, getStream, { ids, renumbered });
  }

  /** Answers a request that was passed to the server. */
  accept(reply: Reply): void {
    reply.answer(accepted);
  }

  /** The answer to `initialize`. It goes to the stream too, and the request is told whether the session exists. */
  opening(id: RequestId, reply: Reply): OpeningAnswer {
    let isAnswered = false;
    const answer = (what: CompleteAnswer): void => {
      if (isAnswered) return;
      isAnswered = true;
      reply.answer(what);
    };
    return {
      stream: undefined,
      faultsInBand: false,
      hasStream: false, // earlier server messages are kept for the GET stream, within its limits
      message: ({ text }) => {
        this.#log.add(getStream, text, false);
        return true;
      },
      response: (response) => {
        const text = eventText(response, this.#session.limits.maxEventBytes);
        if (id !== ownInitializeId) this.#log.add(getStream, text, false);
        answer(accepted);
      },
      refused: ({ text }) => answer({ kind: 'json', text }),
      fault: (reason) => answer(faultAnswer(reason, id)),
      abandon: () => answer(faultAnswer('outcome_unknown', id)),
    };
  }
}
