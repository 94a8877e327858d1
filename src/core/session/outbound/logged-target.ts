import { Answer, type AnswerOptions, type AnswerTarget } from '../../call/answer.ts';
import type { SessionCalls } from '../../call/session-calls.ts';
import { faultMessage, type RequestId } from '../../protocol/faults.ts';
import type { Message } from '../../protocol/message/message.ts';
import { noData } from '../../protocol/wire/sse.ts';
import type { PendingCall } from '../../store/event-log.ts';
import { getStream } from '../../store/event-log.ts';
import type { SessionCore } from '../session-core.ts';
import type { SessionLog } from './session-log.ts';

/**
 * Puts the events of an answer into the log of its session. They come back to the client's connections, which follow
 * or resume the stream.
 */
export class LoggedTarget implements AnswerTarget {
  number: number | undefined;
  isLogged: boolean;
  readonly #session: SessionCore;
  readonly #log: SessionLog;
  /** The requests that a new stream is to answer, until the log knows them. */
  #opens: readonly RequestId[] | undefined;

  /** @param number the stream, if the log knows it already */
  constructor(session: SessionCore, log: SessionLog, number?: number) {
    this.#session = session;
    this.#log = log;
    this.number = number;
    this.isLogged = number !== undefined;
  }

  open(answer: Answer): void {
    this.number = this.#log.streams.open(answer.connect(), answer.clientIds);
    this.#opens = answer.ids;
    if (this.#session.primes) this.#add(noData, false);
  }

  write(message: Message): boolean {
    this.#add(message.text, false, undefined, this.#liveOf(message, message.text));
    return true;
  }

  respond(response: Message, isLast: boolean, id: RequestId | undefined): void {
    const text = eventText(response, this.#session.limits.maxEventBytes);
    const endsStream = isLast && this.number !== getStream; // the GET stream never ends
    this.#add(text, endsStream, id, this.#liveOf(response, text));
  }

  flush(): void {
    this.#log.flush();
  }

  undeliverable(): void {
    this.#session.drop('undeliverable');
  }

  /** The message itself, for a connection that gets more than the log does, or that reads messages. */
  #liveOf(message: Message, logged: Buffer): Message | undefined {
    return this.#session.client.isGroup || logged !== message.text ? message : undefined;
  }

  #add(text: Buffer, last: boolean, settles?: RequestId, live?: Message): void {
    const stream = this.number as number;
    const opens = this.#opens && pendingCalls(this.#session.calls, stream, this.#opens);
    this.#opens = undefined;
    this.isLogged = true;
    if (opens === undefined && settles === undefined && live === undefined) return this.#log.add(stream, text, last);
    this.#log.add(stream, text, last, { opens: opens?.length === 0 ? undefined : opens, settles, live });
  }
}

/**
 * Creates the answer to requests on a stream that exists already: one of an earlier owner, or the GET stream of a client
 * that gets everything there.
 */
export function answerOnStream(
  session: SessionCore,
  log: SessionLog,
  stream: number,
  requests: Pick<AnswerOptions, 'ids' | 'renumbered'>,
): Answer {
  const { streamAfterMs: commitAfterMs } = session.limits;
  const target = new LoggedTarget(session, log, stream);
  return new Answer(target, { era: 'legacy', ...requests, commitAfterMs });
}

/** The calls that a stream has yet to answer. The next owner of the session finds them in the log. */
function pendingCalls(calls: SessionCalls, stream: number, ids: readonly RequestId[]): readonly PendingCall[] {
  const pending = ids.map((id) => calls.get(id)).filter((call) => call !== undefined);
  return pending.map(({ id, method, request, report, renumbered }) => ({
    stream,
    id,
    method,
    text: request?.text,
    ...(renumbered !== undefined && { client: [renumbered.idText, renumbered.tokenText ?? null] as const }),
    ...(report?.name !== undefined && { name: report.name }),
  }));
}

/**
 * Returns the text of a response for the log. In place of a response that is too large, the log gets an error, for a
 * client that resumes. The connection that follows the stream gets the response itself.
 */
export const eventText = ({ id = null, text }: Message, maxEventBytes: number): Buffer =>
  text.length <= maxEventBytes ? text : Buffer.from(faultMessage('event_too_large', id));
