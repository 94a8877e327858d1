import { createHash } from 'node:crypto';
import { scanObject } from '../json/scan.ts';
import { type Message, memberRange } from '../message/message.ts';

/** What a client adds to a request that it sends once more with the input that was asked for (2026-07-28, basic/patterns/mrtr). */
export interface Retry {
  /** The state as it came, to be opened by whoever sealed it; undefined if it is no text. */
  readonly state: string | undefined;
  /** Results by the key of what was asked, as JSON text; empty if there are none, or no object of them. */
  readonly answers: ReadonlyMap<string, Buffer>;
}

const stateKey = 'requestState';
const answersKey = 'inputResponses';

/** The members of `params` that are of one try alone: a request and its retry have different ones. */
export const retryMemberKeys: readonly string[] = [stateKey, answersKey];

/**
 * Reads what makes a request a retry; undefined for one that is none: the gateway always gives a state, so answers without one
 * are to nothing that it asked.
 */
export function readRetry(request: Message): Retry | undefined {
  const state = memberRange(request, 'params', stateKey);
  const answers = memberRange(request, 'params', answersKey);
  if (state === undefined) return undefined;
  const { text } = request;
  return {
    state:
      text[state.start] === 0x22 ? (JSON.parse(text.toString('utf8', state.start, state.end)) as string) : undefined,
    answers: answers ? membersOf(text.subarray(answers.start, answers.end)) : new Map(),
  };
}

function membersOf(text: Buffer): ReadonlyMap<string, Buffer> {
  const members = scanObject(text);
  if (members === undefined || members === 'duplicate_key') return new Map();
  const { keys, starts, ends } = members;
  return new Map(keys.map((key, index) => [key, text.subarray(starts[index], ends[index])]));
}

/**
 * What a request and its retries have in common, as a digest: the method and the members of `params`, as their text and in
 * any order, but for those of one try and `_meta`, which each request has of its own (progress token, trace, log level).
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
  // Each part with its length before it: no two requests have the same bytes.
  for (const part of [Buffer.from(request.method as string), ...parts]) sha.update(`${part.length}:`).update(part);
  return sha.digest('base64url');
}
