import { detach } from '../../../core/util/boundary.ts';
import { Milestone } from '../../../core/util/timing/milestone.ts';
import { settlesWithin } from '../../../core/util/timing/within.ts';
import {
  type EventStreamEnd,
  type FollowOptions,
  followEventStream,
  isEventStream,
} from '../http-client/event-stream.ts';
import type { HttpResponse } from '../http-client/http-connection.ts';
import type { DropRepeats } from './repeated-messages.ts';

/** Options of the standalone stream. */
export interface StandaloneStreamOptions
  extends Pick<FollowOptions, 'flow' | 'maxLineBytes' | 'canceller' | 'isForgotten' | 'onMessages' | 'onNoise'> {
  open(lastEventId: string | undefined): Promise<HttpResponse>;
  onCursor(isFirst: boolean): void;
  onEnd(end: EventStreamEnd): void;
}

/**
 * The server's messages that belong to no request (2025-11-25, basic/transports, "Listening for Messages from the
 * Server").
 */
export interface StandaloneStream {
  /** The last event that was read. */
  readonly cursor: string | undefined;
  /** Follows the stream after an event, or from its beginning. Called once at most. */
  follow(from?: string, dropRepeats?: DropRepeats): void;
  /**
   * Resolves when the stream may have missed a message, or is no longer followed; undefined while it is not open, and
   * has no event to go on after.
   */
  lost(): Promise<void> | undefined;
  /**
   * Resolves when the followed stream is open or refused, or after `maxOpenWaitMs`. A message that the server sends on
   * it before is lost. If that is a request to the client of the first call, the call would wait for ever.
   */
  whenOpen(): Promise<unknown>;
}

/** A server may send the head of a stream only with its first event, so the wait is short. */
const maxOpenWaitMs = 250;

export function createStandaloneStream({
  open,
  onMessages,
  onCursor,
  onEnd,
  ...parts
}: StandaloneStreamOptions): StandaloneStream {
  let isFollowed = false;
  let cursor: string | undefined;
  /** Passed when the stream that is open now is lost. */
  let lost: Milestone | undefined;
  const noteLost = (): void => {
    lost?.pass();
    lost = undefined;
  };
  const opened = new Milestone();
  const noteOpened = (): void => opened.pass();
  return {
    get cursor() {
      return cursor;
    },
    follow(from, dropRepeats = (messages) => messages) {
      if (isFollowed || parts.canceller.aborted) return;
      isFollowed = true;
      cursor = from;
      const followed = followEventStream({
        ...parts,
        cursor,
        isStandalone: true,
        open: (lastEventId) => {
          const response = open(lastEventId);
          response.then(noteOpened, noteOpened);
          return response.then((answer) => {
            if (isEventStream(answer)) lost ??= new Milestone();
            return answer;
          });
        },
        onDisconnected(position) {
          if (position === undefined) noteLost();
        },
        onMessages: (messages) => onMessages(dropRepeats(messages)),
        onCursor(id) {
          onCursor(cursor === undefined);
          cursor = id;
        },
      });
      const handleEnd = (end: EventStreamEnd): void => {
        noteLost();
        onEnd(end);
      };
      detach('backend', followed.then(handleEnd));
    },
    lost: () => lost?.passed,
    whenOpen: async () => isFollowed && settlesWithin(opened.passed, maxOpenWaitMs),
  };
}
