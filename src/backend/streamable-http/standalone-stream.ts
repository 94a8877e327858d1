import { detach } from '../../util/boundary.ts';
import { settlesWithin } from '../../util/settles-within.ts';
import type { Answer } from '../http-client/http-connection.ts';
import type { LeaveOut } from './repeated-messages.ts';
import { followStream, type StreamEnd, type StreamParts } from './resumable-stream.ts';

/** What the standalone stream needs. */
export interface StandaloneParts
  extends Pick<StreamParts, 'flow' | 'maxLineBytes' | 'idleTimeoutMs' | 'signal' | 'onMessages'> {
  open(lastEventId: string | undefined): Promise<Answer>;
  onCursor(isFirst: boolean): void;
  onEnd(end: StreamEnd): void;
}

/** The server's messages that belong to no request (2025-11-25, basic/transports, "Listening for Messages from the Server"). */
export interface Standalone {
  /** The last event that was read. */
  readonly cursor: string | undefined;
  /** Follows the stream from an event on, or from its beginning. Once. */
  follow(from?: string, leaveOut?: LeaveOut): void;
  /**
   * Resolves when the stream, if it is followed, is open or refused, or after `maxUnheardMs`. What a server says there while
   * nobody listens is lost: a question of the first call to its client, and the call would wait for ever.
   */
  heard(): Promise<unknown>;
}

/** A server may send the head of a stream with its first event only, and is not waited for longer. */
const maxUnheardMs = 250;

export function createStandalone({ open, onMessages, onCursor, onEnd, ...parts }: StandaloneParts): Standalone {
  let isFollowed = false;
  let cursor: string | undefined;
  let tellHeard: () => void;
  const heard = new Promise<void>((resolve) => {
    tellHeard = resolve;
  });
  return {
    get cursor() {
      return cursor;
    },
    follow(from, leaveOut = (messages) => messages) {
      if (isFollowed || parts.signal.aborted) return;
      isFollowed = true;
      cursor = from;
      const followed = followStream({
        ...parts,
        ...{ cursor, isStandalone: true },
        open: (lastEventId) => {
          const opened = open(lastEventId);
          opened.then(tellHeard, tellHeard);
          return opened;
        },
        isComplete: () => false,
        onMessages: (messages) => onMessages(leaveOut(messages)),
        onCursor(id) {
          onCursor(cursor === undefined);
          cursor = id;
        },
      });
      detach('backend', followed.then(onEnd));
    },
    heard: async () => isFollowed && settlesWithin(heard, maxUnheardMs),
  };
}
