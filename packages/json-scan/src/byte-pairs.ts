/**
 * Skips long runs of white space and digits quickly, by pairs of bytes. No peer needs such runs, but a text of 64 MiB
 * can consist of them (P8).
 */

/** The kinds of bytes that a run can consist of. */
export const spaces = 1;
export const digits = 2;

/** For each pair of bytes, the kinds that both bytes have. The order of the two bytes does not matter. */
const kindsOfPair = new Uint8Array(2 ** 16);
for (const [kind, bytes] of [
  [spaces, Buffer.from(' \t\n\r')],
  [digits, Buffer.from('0123456789')],
] as const)
  for (const one of bytes)
    for (const other of bytes) kindsOfPair[one * 256 + other] = (kindsOfPair[one * 256 + other] as number) | kind;

/** The most recent text, and its pairs. */
let pairedText: Buffer | undefined;
let pairs: Uint16Array = new Uint16Array(0);

/** Drops the reference to the text, which would otherwise stay alive. */
export function releasePairs(): void {
  if (pairedText === undefined) return;
  pairedText = undefined;
  pairs = new Uint16Array(0);
}

/** Returns the index of the first byte at or after `from` that is not of this kind, or the end of the text. */
export function endOfRun(text: Buffer, from: number, kind: number): number {
  const first = text.byteOffset & 1; // the first byte that begins a pair
  if (pairedText !== text) {
    pairedText = text;
    pairs = new Uint16Array(text.buffer, text.byteOffset + first, Math.max(0, (text.length - first) >> 1));
  }
  if (((from - first) & 1) !== 0 && !hasKind(text, from, kind)) return from;
  const view = pairs;
  let pair = (from - first + 1) >> 1;
  const end = view.length;
  for (; pair <= end - 4; pair += 4) {
    const one = kindsOfPair[view[pair] as number] as number;
    const two = kindsOfPair[view[pair + 1] as number] as number;
    const three = kindsOfPair[view[pair + 2] as number] as number;
    const four = kindsOfPair[view[pair + 3] as number] as number;
    if ((one & two & three & four & kind) === 0) break;
  }
  while (pair < end && ((kindsOfPair[view[pair] as number] as number) & kind) !== 0) pair += 1;
  const at = first + pair * 2;
  return hasKind(text, at, kind) ? at + 1 : at;
}

const hasKind = (text: Buffer, at: number, kind: number): boolean =>
  at < text.length && ((kindsOfPair[(text[at] as number) * 257] as number) & kind) !== 0;
