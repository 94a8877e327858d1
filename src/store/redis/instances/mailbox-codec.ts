import type { MailboxMessage } from '../../instances.ts';
import { textOf } from '../codec.ts';
import type { ScriptReply } from '../script.ts';

/** The bytes that a message counts beside its content, so that empty messages count too. */
const messageOverheadBytes = 64;
const lengthBytes = 4;

/** The bytes that messages count towards the limit of a mailbox. */
export const mailboxBytes = (contents: readonly Buffer[]): number =>
  contents.reduce((sum, { length }) => sum + length + messageOverheadBytes, 0);

/** Packs the messages of one `enqueue` into one value, each behind its length. */
export function packMessages(contents: readonly Buffer[]): Buffer {
  return Buffer.concat(
    contents.flatMap((content) => {
      const length = Buffer.allocUnsafe(lengthBytes);
      length.writeUInt32BE(content.length);
      return [length, content];
    }),
  );
}

/** One entry of a mailbox: the messages of one `enqueue`. */
export interface MailboxEntry {
  readonly id: string;
  /** The bytes that were ever posted to this mailbox, including this entry. */
  readonly totalBytes: string;
  readonly messages: readonly MailboxMessage[];
}

/** Parses an entry: the id, and a flat list of fields and values. */
export function parseMailboxEntry([id, flat]: readonly [ScriptReply, readonly ScriptReply[]]): MailboxEntry {
  const values = new Map<string, ScriptReply>();
  for (let at = 0; at < flat.length; at += 2) values.set(textOf(flat[at]), flat[at + 1] ?? null);
  const from = textOf(values.get('f'));
  const first = Number(textOf(values.get('n')));
  const packed = values.get('d') as Buffer;
  const messages: MailboxMessage[] = [];
  for (let at = 0; at < packed.length; ) {
    const start = at + lengthBytes;
    at = start + packed.readUInt32BE(at);
    messages.push({ from, number: first + messages.length, content: packed.subarray(start, at) });
  }
  return { id: textOf(id), totalBytes: textOf(values.get('z')), messages };
}
