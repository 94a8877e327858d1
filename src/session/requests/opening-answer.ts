import type { Call } from '../../call/call-table.ts';
import { LegacyAnswer, type LegacyAnswerHost } from '../../call/legacy-answer.ts';
import type { RequestId } from '../../protocol/faults.ts';
import type { Message } from '../../protocol/message/message.ts';
import { createMessageBatch } from '../../reply/event-batch.ts';
import type { EventSink, Headers, Reply } from '../../reply/reply.ts';
import type { SessionOptions } from '../session-options.ts';

/** Takes the server's answer to `initialize`. */
export interface OpeningHandler {
  answered(call: Call, response: Message): void;
}

/** Callbacks of such a stream. */
export interface UnloggedStreamOptions {
  onUndeliverable(): void;
  /** The client does not keep up, or does again. No other limit bounds the bytes that wait for it. */
  onBlocked(isBlocked: boolean): void;
}

/**
 * The stream of the answer to `initialize`, which cannot be resumed. Before that answer the session has no record to
 * log events in, so they are sent without an id (P5).
 */
function createUnloggedStream({ onUndeliverable, onBlocked }: UnloggedStreamOptions): LegacyAnswerHost {
  let sink: EventSink | undefined;
  return {
    openStream(opened) {
      sink = opened;
      opened?.onDrain(() => onBlocked(false));
      return 0;
    },
    emit(_stream, text, last) {
      if (sink?.write(createMessageBatch(text)) === false) onBlocked(true);
      if (last) sink?.end();
    },
    flush: () => undefined,
    onUndeliverable,
  };
}

/**
 * The answer to `initialize`.
 * @param headers of a successful answer
 */
export function createOpeningAnswer(
  id: RequestId,
  reply: Reply,
  headers: Headers | undefined,
  { commitAfterMs, maxEventBytes }: Pick<SessionOptions, 'commitAfterMs' | 'maxEventBytes'>,
  stream: UnloggedStreamOptions,
): LegacyAnswer {
  return new LegacyAnswer(createUnloggedStream(stream), {
    reply,
    ids: [id],
    isBatch: false,
    primes: false,
    upgradeAfterMs: commitAfterMs,
    maxEventBytes,
    ...(headers && { headers }),
  });
}
