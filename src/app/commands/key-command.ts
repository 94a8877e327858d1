import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, statSync, writeSync } from 'node:fs';
import { digestOfKey } from '../../auth/api-keys.ts';
import { readKeysFile } from '../../config/access/api-key-sources.ts';
import { renderIssueMessage } from '../../config/issues.ts';
import { flagOf } from '../../config/options/option-names.ts';
import { loadLibrary } from '../../util/load-library.ts';

/** The prefix of every key, so that secret scanners find keys. */
const prefix = 'mcpgw_';

/** A new key and its two entries for the gateway, which contain only a hash of the key. */
export interface NewKey {
  readonly key: string;
  /** The entry for the key file. */
  readonly entry: string;
  /** The entry for `GANGWAY_API_KEYS`. */
  readonly variable: string;
}

/** Creates an API key of 256 random bits. */
export function makeKey(name: string): NewKey {
  const key = `${prefix}${randomBytes(32).toString('base64url')}`;
  const sha256 = digestOfKey(key);
  return { key, entry: JSON.stringify({ name, sha256 }), variable: `${name}:sha256:${sha256}` };
}

/**
 * Adds the entry of a key to a key file, and creates the file if it does not exist. The file is replaced as a whole, so
 * that a running gateway never reads half of it. Only its owner can read it. Comments of the file are kept. Throws an
 * error for the operator if the file is not a valid key file or cannot be written.
 */
export function addToKeyFile(file: string, { entry }: Pick<NewKey, 'entry'>): void {
  const { text, owner } = readExisting(file);
  const faults: string[] = [];
  readKeysFile(text, file, (path, message) => faults.push(`${path} ${renderIssueMessage(message, flagOf)}`));
  if (faults.length > 0) throw new Error(`The key was not added. ${faults.join('. ')}.`);
  const temporary = `${file}.${process.pid}.new`;
  try {
    const descriptor = openSync(temporary, 'wx', 0o600);
    try {
      writeSync(descriptor, withEntry(text, entry));
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    renameSync(temporary, file);
  } catch (cause) {
    rmSync(temporary, { force: true });
    throw new Error(`The key was not added: ${file} cannot be written (${(cause as Error).message})${owner}.`, {
      cause,
    });
  }
}

function readExisting(file: string): { readonly text: string; readonly owner: string } {
  try {
    const text = readFileSync(file, 'utf8');
    return { text: text.trim() === '' ? '[]\n' : text, owner: ownerHint(file) };
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return { text: '[]\n', owner: '' };
    throw new Error(`The key was not added: ${file} cannot be read (${(cause as Error).message}).`, { cause });
  }
}

const ownerHint = (file: string): string => {
  const { uid } = statSync(file);
  return uid === process.geteuid?.() ? '' : `; the file belongs to the user ${uid}`;
};

/** The text of a valid key file with one more entry at its end. Comments stay. */
function withEntry(text: string, entry: string): string {
  const { applyEdits, modify } = loadLibrary('jsonc-parser');
  const formattingOptions = { insertSpaces: true, tabSize: 2, eol: '\n' };
  return applyEdits(text, modify(text, [-1], JSON.parse(entry), { isArrayInsertion: true, formattingOptions }));
}
