import { describe, expect, it } from 'vitest';
import { cpuMsOf, msHere } from '../../../test/support/cpu-time.ts';
import { SteppedScan } from '../src/scan.ts';

/** The most expensive messages that `bench/worst.mjs` has found, and others that cost much for each byte. */

/** As deep as the gateway reads texts of servers. */
const maxServerDepth = 1_000;

const mebibyte = 2 ** 20;
/**
 * A text of the largest size may stall the event loop this long for each MiB on a fast, quiet machine. A cost that grows
 * faster than the text takes far longer.
 */
const maxMs = 60;

const filled = (before: string, piece: (index: number) => string, after: string): Buffer => {
  const pieces: string[] = [];
  for (let length = 0, index = 0; length < mebibyte; index += 1) {
    const next = piece(index);
    pieces.push(next);
    length += next.length;
  }
  return Buffer.from(`${before}${pieces.join('')}${after}`);
};
const listOf = (piece: string) => filled('{"jsonrpc":"2.0","id":1,"result":{"a":[', () => piece, '0]}}');
const paramsOf = (piece: (index: number) => string) =>
  filled('{"jsonrpc":"2.0","id":1,"method":"a","params":{', piece, '"":0}}');

/** The processor time of the longest step, in milliseconds: the least of some scans, since other programs add to it. */
function longestStepMs(text: Buffer): number {
  const times = Array.from({ length: 4 }, () => {
    const scan = new SteppedScan(Buffer.from(text), maxServerDepth, () => undefined);
    let longest = 0;
    for (let isOver = false; !isOver; ) {
      const stepMs = cpuMsOf(() => {
        isOver = scan.step() !== undefined;
      });
      longest = Math.max(longest, stepMs);
    }
    return longest;
  });
  return Math.min(...times);
}

describe('[P8] 1 MiB of the most expensive input', () => {
  it.each([
    ['members of params', paramsOf((index) => `\r"a${index.toString(36)}":0,`)],
    ['members of params with escapes', paramsOf((index) => `"\\n${index}":0,`)],
    ['numbers of one digit', listOf('1,')],
    ['empty strings', listOf('"",')],
    ['empty objects', listOf('{},')],
    ['lists in lists', listOf('[[[[[[[[0]]]]]]]],')],
    ['members with empty keys', listOf('{"":0},')],
    ['hexadecimal escapes', listOf(`"${'\\u0041'.repeat(100)}",`)],
    ['single spaces', listOf('1 , ')],
    ['brackets without end', filled('{"jsonrpc":"2.0","id":1,"result":', () => '[', '')],
  ])(`stalls the event loop for at most ${maxMs} ms: %s`, (_, text) => {
    expect(longestStepMs(text)).toBeLessThan(msHere(maxMs));
  });
});
