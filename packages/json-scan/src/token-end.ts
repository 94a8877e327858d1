import { digits, endOfRun, spaces } from './byte-pairs.ts';

/** Finds the ends of white space and of the scalars that are not strings (RFC 8259, sections 2, 3 and 6). */

const isSpace = new Uint8Array(256);
for (const byte of [0x20, 0x09, 0x0a, 0x0d]) isSpace[byte] = 1;

const isHex = new Uint8Array(256);
for (const byte of Buffer.from('0123456789abcdefABCDEF')) isHex[byte] = 1;

const isDigit = new Uint8Array(256);
for (const byte of Buffer.from('0123456789')) isDigit[byte] = 1;

/** This much white space, or this many digits, are read byte by byte. Longer runs are rare. */
const nearBytes = 8;

/**
 * The byte at a position, or 0, which no JSON contains, behind the end. V8 makes all reads at this place in the code
 * slow after one read past the end of a buffer.
 */
export const byteAt = (text: Buffer, at: number): number => (at < text.length ? (text[at] as number) : 0);

/** The position behind white space. */
export function spaceEnd(text: Buffer, start: number): number {
  if (start < text.length && (text[start] as number) > 0x20) return start;
  let at = start;
  const far = Math.min(start + nearBytes, text.length);
  while (at < far && isSpace[text[at] as number] === 1) at += 1;
  return at < far || at === text.length ? at : endOfRun(text, at, spaces);
}

/** The position behind a number, `true`, `false` or `null`, or -1. */
export function scalarEnd(text: Buffer, at: number, first: number): number {
  if (first === 0x74) return literalEnd(text, at, literals.true);
  if (first === 0x66) return literalEnd(text, at, literals.false);
  if (first === 0x6e) return literalEnd(text, at, literals.null);
  return numberEnd(text, at);
}

const literals = { true: Buffer.from('true'), false: Buffer.from('false'), null: Buffer.from('null') };

function literalEnd(text: Buffer, at: number, literal: Buffer): number {
  for (let i = 1; i < literal.length; i++) if (text[at + i] !== literal[i]) return -1;
  return at + literal.length;
}

/**
 * The position behind a number of the form `-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?`, or -1. Its value does not
 * matter here.
 */
export function numberEnd(text: Buffer, start: number): number {
  let at = byteAt(text, start) === 0x2d ? start + 1 : start;
  at = byteAt(text, at) === 0x30 ? at + 1 : digitsEnd(text, at);
  if (at >= 0 && byteAt(text, at) === 0x2e) at = digitsEnd(text, at + 1);
  if (at >= 0 && (byteAt(text, at) === 0x65 || byteAt(text, at) === 0x45)) {
    at += 1;
    if (byteAt(text, at) === 0x2b || byteAt(text, at) === 0x2d) at += 1;
    at = digitsEnd(text, at);
  }
  return at;
}

/** The position behind one or more digits, or -1. */
function digitsEnd(text: Buffer, start: number): number {
  let at = start;
  const far = Math.min(start + nearBytes, text.length);
  while (at < far && isDigit[text[at] as number] === 1) at += 1;
  if (at === far && at < text.length) return endOfRun(text, at, digits);
  return at > start ? at : -1;
}

/** True if four hexadecimal digits stand at this position. */
export function hexAt(text: Buffer, at: number): boolean {
  for (let i = at; i < at + 4; i++) if (isHex[byteAt(text, i)] !== 1) return false;
  return true;
}
