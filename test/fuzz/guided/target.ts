import { createHash } from 'node:crypto';
import { fuzzers } from '../fuzzers.ts';

/** What jazzer.js calls with the bytes that it has chosen: the fuzzer that FUZZ_TARGET names. */
const name = process.env['FUZZ_TARGET'];
const found = fuzzers.find((each) => each.name === name);
if (found === undefined && name !== 'planted') throw new Error(`There is no fuzzer with the name ${name}`);

/** A planted fault, which shows that the fuzzer finds what random bytes would not: it needs four bytes in a row. */
function planted(bytes: Buffer): void {
  if (bytes[0] === 0x67 && bytes[1] === 0x61 && bytes[2] === 0x74 && bytes[3] === 0x65) throw new Error('planted');
}

export const fuzz = (bytes: Buffer): void | Promise<void> =>
  found?.runOn(bytes) ?? (found ? undefined : planted(bytes));

/** The names of all fuzzers, for the command that runs them. */
export const names = fuzzers.map((each) => each.name);

/** Tries some cases of a fuzzer that nothing guides, and rejects if they do not reach what they are for. */
export async function expectReach(wanted: string): Promise<void> {
  const fuzzer = fuzzers.find((each) => each.name === wanted);
  for (let n = 0; n < 200; n++)
    await fuzzer?.runOn(createHash('shake256', { outputLength: 2_048 }).update(`${n}`).digest());
  fuzzer?.expectReach();
}
