import { createReadStream } from 'node:fs';
import type { ChainReport } from '../../app/features/telemetry.ts';
import { ChainCheck } from './chain.ts';

/** A longer line is no audit record, so the rest of it counts as another line (P8). */
const maxLineBytes = 1024 * 1024;

/** Checks the chain of files, the oldest first, up to the first broken line. Rejects if a file cannot be read. */
export async function verifyChain(files: readonly string[], known?: string): Promise<ChainReport> {
  const check = new ChainCheck(known);
  for (const file of files) {
    let number = 0;
    for await (const line of linesOf(file)) {
      number += 1;
      check.check(file, number, line);
      if (!check.isWhole) return check.report;
    }
  }
  return check.report;
}

/** Reads the lines of a file, without their line breaks. A line can have any bytes. */
async function* linesOf(file: string): AsyncGenerator<Buffer> {
  let rest = Buffer.alloc(0);
  for await (const chunk of createReadStream(file)) {
    let bytes = rest.length === 0 ? (chunk as Buffer) : Buffer.concat([rest, chunk as Buffer]);
    for (let end = bytes.indexOf(0x0a); end >= 0; end = bytes.indexOf(0x0a)) {
      yield bytes.subarray(0, end);
      bytes = bytes.subarray(end + 1);
    }
    if (bytes.length > maxLineBytes) {
      yield bytes;
      bytes = Buffer.alloc(0);
    }
    rest = Buffer.from(bytes);
  }
  if (rest.length > 0) yield rest;
}
