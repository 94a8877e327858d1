/** Leaves out of one stream what it repeats, up to the first message that is new: from there on nothing is repeated. */
export type DropRepeats = (messages: Buffer[]) => Buffer[];

/**
 * What servers repeat when their streams are resumed from an event that lies further back than what was taken of them.
 * @param taken the messages that were taken since that event, of all streams
 */
export function createRepeatFilter(taken: readonly Buffer[]): () => DropRepeats {
  const counts = new Map<string, number>();
  for (const message of taken) counts.set(keyOf(message), (counts.get(keyOf(message)) ?? 0) + 1);
  const isRepeat = (message: Buffer): boolean => {
    const count = counts.get(keyOf(message)) ?? 0;
    if (count > 0) counts.set(keyOf(message), count - 1);
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

/** Each byte as one character. */
const keyOf = (message: Buffer): string => message.toString('latin1');
