import { valueAt } from '../json/splice.ts';

const key = Buffer.from('"isError"');
const colon = 0x3a;
const firstOfTrue = 0x74;
const whiteSpace: ReadonlySet<number | undefined> = new Set([0x20, 0x09, 0x0a, 0x0d]);

/**
 * Whether the response to a `tools/call` says that the tool failed: what goes wrong in a tool is a result all the same
 * (2025-11-25, server/tools, "Error Handling"). It is asked of each response: the bytes of the member are searched for
 * natively, and the text is only looked at properly where they stand before what can be `true`. A key that is written with
 * escapes, as no server does, is not found.
 */
export function isToolError(response: Buffer): boolean {
  const isLarge = response.length > maxReadBytes;
  for (let at = response.indexOf(key); at !== -1; at = response.indexOf(key, at + key.length)) {
    if (canBeTrue(response, at + key.length))
      return isLarge || valueAt(response, ['result', 'isError'])?.toString() === 'true';
  }
  return false;
}

/** In a larger response the bytes decide: reading it again holds up everybody else. They can belong to something inside of the result. */
const maxReadBytes = 1024 * 1024;

function canBeTrue(text: Buffer, from: number): boolean {
  let at = from;
  while (whiteSpace.has(text[at]) || text[at] === colon) at += 1;
  return text[at] === firstOfTrue;
}
