import type { MailboxMessage } from '../../instances.ts';
import { textOf } from '../codec.ts';
import type { ScriptReply } from '../script.ts';

/** What a letter counts beside its content, so that empty ones do not come for free. */
const letterOverheadBytes = 64;
const lengthBytes = 4;

/** The bytes that letters count towards the limit of a mailbox. */
export const mailboxBytes = (contents: readonly Buffer[]): number =>
  contents.reduce((sum, { length }) => sum + length + letterOverheadBytes, 0);

/** All contents of a post as one value, each behind its length. */
export function packMessages(contents: readonly Buffer[]): Buffer {
  return Buffer.concat(
    contents.flatMap((content) => {
      const length = Buffer.allocUnsafe(lengthBytes);
      length.writeUInt32BE(content.length);
      return [length, content];
    }),
  );
}

/** One entry of a mailbox. */
export interface MailboxEntry {
  readonly id: string;
  /** The bytes that were ever posted to this mailbox, this post included. */
  readonly totalBytes: string;
  readonly letters: readonly MailboxMessage[];
}

/** Reads an entry: its id and its flat list of fields and values. */
export function parseMailboxEntry([id, flat]: readonly [ScriptReply, readonly ScriptReply[]]): MailboxEntry {
  const values = new Map<string, ScriptReply>();
  for (let at = 0; at < flat.length; at += 2) values.set(textOf(flat[at]), flat[at + 1] ?? null);
  const from = textOf(values.get('f'));
  const first = Number(textOf(values.get('n')));
  const packed = values.get('d') as Buffer;
  const letters: MailboxMessage[] = [];
  for (let at = 0; at < packed.length; ) {
    const start = at + lengthBytes;
    at = start + packed.readUInt32BE(at);
    letters.push({ from, number: first + letters.length, content: packed.subarray(start, at) });
  }
  return { id: textOf(id), totalBytes: textOf(values.get('z')), letters };
}
