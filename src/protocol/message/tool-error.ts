import { valueAt } from '../json/splice.ts';
import type { Message } from './message-type.ts';

const key = Buffer.from('"isError"');
const colon = 0x3a;
const firstByteOfTrue = 0x74;
const whiteSpace: ReadonlySet<number | undefined> = new Set([0x20, 0x09, 0x0a, 0x0d]);

/**
 * True if the response to a `tools/call` reports that the tool failed: even a failed tool gives a result (2025-11-25,
 * server/tools, "Error Handling"). The scan of a large message has looked for the key. In a small one, the key is searched
 * for natively, and the text is parsed only where `true` may follow. A key that is written with escapes, as no server
 * does, is not found.
 */
export const isToolError = ({ reportsToolError, text }: Pick<Message, 'reportsToolError' | 'text'>): boolean =>
  reportsToolError ?? hasTrueIsError(text);

function hasTrueIsError(response: Buffer): boolean {
  const isLarge = response.length > maxReadBytes;
  for (let at = response.indexOf(key); at !== -1; at = response.indexOf(key, at + key.length)) {
    if (canBeTrue(response, at + key.length))
      return isLarge || valueAt(response, ['result', 'isError'])?.toString() === 'true';
  }
  return false;
}

/**
 * In a larger response the bytes alone decide, although they can belong to something inside of the result. Reading it
 * again would delay everybody else.
 */
const maxReadBytes = 1024 * 1024;

function canBeTrue(text: Buffer, from: number): boolean {
  let at = from;
  while (whiteSpace.has(text[at]) || text[at] === colon) at += 1;
  return text[at] === firstByteOfTrue;
}
