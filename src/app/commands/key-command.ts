import { randomBytes } from 'node:crypto';
import {
  closeSync,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeSync,
} from 'node:fs';
import { digestOfKey } from '../../auth/api-keys.ts';
import { readKeysFile } from '../../config/access/api-key-sources.ts';
import { renderIssueMessage } from '../../config/issues.ts';
import { flagOf } from '../../config/options/option-names.ts';
import { loadLibrary } from '../../util/load-library.ts';

/** The prefix of every key, so that secret scanners find keys. */
const prefix = 'mcpgw_';

/** A new key and its two entries for the gateway, which contain only a hash of the key. */
export interface NewKey {
  readonly name: string;
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
  return { name, key, entry: JSON.stringify({ name, sha256 }), variable: `${name}:sha256:${sha256}` };
}

/**
 * Adds the entry of a key to a key file, and creates the file if it does not exist. The file is replaced as a whole, so
 * that a running gateway never reads half of it. Only the owner of a new file can read it. An existing file keeps its
 * owner, its permissions and its comments. Throws an error for the operator if the file is not a valid key file or
 * cannot be written.
 * @returns how many keys with this name the file had before
 */
export function addToKeyFile(file: string, { name, entry }: Pick<NewKey, 'name' | 'entry'>): number {
  const { text, owner, target, attributes } = readExisting(file);
  const faults: string[] = [];
  const keys = readKeysFile(text, file, (path, message) =>
    faults.push(`${path} ${renderIssueMessage(message, flagOf)}`),
  );
  if (faults.length > 0) throw new Error(`The key was not added. ${faults.join('. ')}.`);
  const temporary = `${target}.${process.pid}.new`;
  try {
    const descriptor = openSync(temporary, 'wx', 0o600);
    try {
      writeSync(descriptor, withEntry(text, entry));
      if (attributes !== undefined) keepAttributes(descriptor, attributes);
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    renameSync(temporary, target);
  } catch (cause) {
    rmSync(temporary, { force: true });
    throw new Error(`The key was not added: ${file} cannot be written (${(cause as Error).message})${owner}.`, {
      cause,
    });
  }
  return keys?.filter((key) => key.name === name).length ?? 0;
}

/** A key file as it is now, or the beginning of a new one. */
interface KeyFile {
  readonly text: string;
  /** The end of an error message about a file of another user. */
  readonly owner: string;
  /** The file that is replaced: a link stays a link. */
  readonly target: string;
  readonly attributes?: Stats;
}

function keepAttributes(descriptor: number, { mode, uid, gid }: Stats): void {
  const own = fstatSync(descriptor);
  if (own.uid !== uid || own.gid !== gid) fchownSync(descriptor, uid, gid);
  fchmodSync(descriptor, mode & 0o777);
}

function readExisting(file: string): KeyFile {
  try {
    const text = readFileSync(file, 'utf8');
    const target = realpathSync(file);
    const attributes = statSync(target);
    return { text: text.trim() === '' ? '[]\n' : text, owner: ownerHint(attributes), target, attributes };
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return { text: '[]\n', owner: '', target: file };
    throw new Error(`The key was not added: ${file} cannot be read (${(cause as Error).message}).`, { cause });
  }
}

const ownerHint = ({ uid }: Stats): string =>
  uid === process.geteuid?.() ? '' : `; the file belongs to the user ${uid}`;

/** The text of a valid key file with one more entry at its end. Comments stay. */
function withEntry(text: string, entry: string): string {
  const { applyEdits, modify } = loadLibrary('jsonc-parser');
  const formattingOptions = { insertSpaces: true, tabSize: 2, eol: '\n' };
  return applyEdits(text, modify(text, [-1], JSON.parse(entry), { isArrayInsertion: true, formattingOptions }));
}
