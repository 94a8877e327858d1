import type { Message } from '../../../core/protocol/message/message.ts';

/** Drops the messages that one stream repeats, up to the first new message: from there on nothing is repeated. */
export type DropRepeats = (messages: readonly Message[]) => readonly Message[];

/**
 * Creates filters for messages that servers repeat when their streams are resumed. The server resumes after an event
 * that lies before the last messages delivered.
 * @param taken the messages of all streams that were delivered since that event
 */
export function createRepeatFilter(taken: readonly Message[]): () => DropRepeats {
  const counts = new Map<string, number>();
  for (const message of taken) counts.set(toKey(message), (counts.get(toKey(message)) ?? 0) + 1);
  const isRepeat = (message: Message): boolean => {
    const count = counts.get(toKey(message)) ?? 0;
    if (count > 0) counts.set(toKey(message), count - 1);
    return count > 0;
  };
  return () => {
    let isReplay = counts.size > 0;
    return (messages) => {
      if (!isReplay) return messages;
      const first = messages.findIndex((message) => !isRepeat(message));
      if (first < 0) return [];
      isReplay = false;
      return messages.slice(first);
    };
  };
}

/** Converts each byte to one character. */
const toKey = ({ text }: Message): string => text.toString('latin1');
