import type { ConsoleHost } from '../host.ts';

/** The maximum length of a shown text (P8). */
const maxShown = 4_096;

/**
 * The maximum length that is searched for credentials. It is longer than the shown part, so that the cut splits no
 * credential that is shown.
 */
const maxRead = 2 * maxShown;

/**
 * Returns the start of a message with likely credentials redacted. No filter can find all credentials, so the operator
 * must set `--observe.showContents` to see contents at all.
 */
export function redactContent({ redact }: Pick<ConsoleHost, 'redact'>, bytes: Uint8Array): string {
  const read = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, maxRead)).toString('utf8');
  return truncate(redact(read), bytes.length > maxRead);
}

/** The start of a text, with likely credentials redacted. The end of it must not split a credential, which would stay. */
export const redactStart = ({ redact }: Pick<ConsoleHost, 'redact'>, text: string, length: number): string =>
  redact(text.slice(0, 2 * length)).slice(0, length);

const truncate = (text: string, isTruncated: boolean): string =>
  text.length > maxShown || isTruncated ? `${text.slice(0, maxShown)} …` : text;
