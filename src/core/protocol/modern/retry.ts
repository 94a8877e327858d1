import { createHash } from 'node:crypto';
import { maxScalarBytes, parseBounded, scanObject } from '../json.ts';
import { type Message, memberRange } from '../message/message.ts';

/**
 * The members that a client adds when it sends a request again with the requested input (2026-07-28,
 * basic/patterns/mrtr).
 */
export interface Retry {
  /** The state as received, which only its sealer can open; undefined if it is not a string. */
  readonly state: string | undefined;
  /** Results by the key of their question, as JSON text; empty if there are none, or if they are not an object. */
  readonly answers: ReadonlyMap<string, Buffer>;
}

const stateKey = 'requestState';
const answersKey = 'inputResponses';

/** The members of `params` that belong to one attempt: a request and its retry have different ones. */
export const retryMemberKeys: readonly string[] = [stateKey, answersKey];

/**
 * Reads the retry members of a request. Undefined if it has no state: the gateway always sends one, so answers without
 * it answer none of its questions.
 */
export function readRetry(request: Message): Retry | undefined {
  const state = memberRange(request, 'params', stateKey);
  const answers = memberRange(request, 'params', answersKey);
  if (state === undefined) return undefined;
  const { text } = request;
  return {
    state:
      text[state.start] === 0x22
        ? (parseBounded(text.subarray(state.start, state.end), maxScalarBytes) as string | undefined)
        : undefined,
    answers: answers ? readMembers(text.subarray(answers.start, answers.end)) : new Map(),
  };
}

/** The members of an object by their key, as JSON text; none if the text is no object, or has a key twice. */
export function readMembers(text: Buffer): ReadonlyMap<string, Buffer> {
  const members = scanObject(text);
  if (members === undefined || members === 'duplicate_key') return new Map();
  const { keys, starts, ends } = members;
  return new Map(keys.map((key, index) => [key, text.subarray(starts[index], ends[index])]));
}

/**
 * Returns a digest of the parts that a request and its retries share: the method and the members of `params`, as text
 * and in any order. The digest leaves out the members of one attempt and `_meta`, which every request has of its own
 * (progress token, trace, log level).
 */
export function requestDigest(request: Message): string {
  const members = request.memberRanges.params?.keys ?? [];
  const parts = members
    .filter((key) => key !== '_meta' && !retryMemberKeys.includes(key))
    .sort()
    .flatMap((key) => {
      const { start, end } = memberRange(request, 'params', key) as { start: number; end: number };
      return [Buffer.from(key), request.text.subarray(start, end)];
    });
  const sha = createHash('sha256');
  // The length before each part ensures that no two requests give the same bytes.
  for (const part of [Buffer.from(request.method as string), ...parts]) sha.update(`${part.length}:`).update(part);
  return sha.digest('base64url');
}
