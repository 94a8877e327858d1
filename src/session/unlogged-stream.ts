import { encodeMessage } from '../protocol/sse.ts';
import type { AnswerHost } from './answer.ts';
import type { EventSink } from './reply.ts';

/**
 * The stream of an answer that cannot be resumed: that of `initialize`. Before it is answered the session has no record
 * to log events in, so they go out without an id (P5).
 */
export function createUnloggedStream(onUndeliverable: () => void): AnswerHost {
  let sink: EventSink | undefined;
  return {
    openStream(opened) {
      sink = opened;
      return 0;
    },
    emit(_stream, text, last) {
      sink?.write(encodeMessage(text));
      if (last) sink?.end();
    },
    flush: () => undefined,
    onUndeliverable,
  };
}
