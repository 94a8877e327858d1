import { type Members, memberIndex, scanJson } from './json-scan.ts';

/**
 * Replaces the id of a message and leaves the rest of its text as it is (P1). For messages that were read before: throws
 * if the text is not one JSON object with an id.
 * @param idText the new id as JSON text
 */
export function spliceId(text: Buffer, idText: string): Buffer {
  return splice(text, scanned(text).message, 'id', idText);
}

/** Replaces `params.requestId`, the id that a `notifications/cancelled` names; as `spliceId` otherwise. */
export function spliceCancelledId(text: Buffer, idText: string): Buffer {
  return splice(text, scanned(text).params, 'requestId', idText);
}

function scanned(text: Buffer): { message: Members | undefined; params: Members | undefined } {
  const scan = scanJson(text, Number.POSITIVE_INFINITY);
  const value = scan.ok ? scan.values[0] : undefined;
  if (value === undefined) throw new Error('the text is not one JSON object');
  return value;
}

function splice(text: Buffer, members: Members | undefined, key: string, replacement: string): Buffer {
  const index = memberIndex(members, key);
  if (members === undefined || index < 0) throw new Error(`the message has no ${key}`);
  return Buffer.concat([
    text.subarray(0, members.starts[index]),
    Buffer.from(replacement),
    text.subarray(members.ends[index]),
  ]);
}
