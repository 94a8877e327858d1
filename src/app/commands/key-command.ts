import { randomBytes } from 'node:crypto';
import {
  closeSync,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  openSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeSync,
} from 'node:fs';
import { dirname, resolve } from 'node:path';
import { digestOfKey } from '../../auth/api-keys.ts';
import { readKeysFile } from '../../config/access/api-key-sources.ts';
import type { KeyRequest } from '../../config/access/key-request.ts';
import { renderIssueMessage } from '../../config/issues.ts';
import { namesAt } from '../../config/options/option-names.ts';
import { loadLibrary } from '../../util/load-library.ts';
import { errorCodeOf } from '../../util/text/error-code.ts';

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

/** Creates an API key of 256 random bits, which may be used for everything and does not expire. */
export function makeKey(name: string): NewKey {
  const key = `${prefix}${randomBytes(32).toString('base64url')}`;
  const sha256 = digestOfKey(key);
  return { name, key, entry: JSON.stringify({ name, sha256 }), variable: `${name}:sha256:${sha256}` };
}

/** A key with scopes or an end has only an entry for a key file: the variable cannot express them. */
export type LimitedKey = Omit<NewKey, 'variable'> & Partial<Pick<NewKey, 'variable'>>;

/** Limits what a new key may be used for, and for how long. Without limits, the key stays as it is. */
export function limitKey(
  { name, key, entry, variable }: NewKey,
  { scopes, expires }: Pick<KeyRequest, 'scopes' | 'expires'>,
): LimitedKey {
  const limits = { ...(expires !== undefined && { expires }), ...(scopes.length > 0 && { scopes }) };
  if (Object.keys(limits).length === 0) return { name, key, entry, variable };
  return { name, key, entry: JSON.stringify({ ...JSON.parse(entry), ...limits }) };
}

/** How long an addition waits for others to the same file. Each takes milliseconds. */
const maxWaitMs = 5_000;

/**
 * Adds the entry of a key to a key file, and creates the file if it does not exist. The file is replaced as a whole, so
 * that a running gateway never reads half of it. Additions at the same time wait for each other. Only the owner of a new
 * file can read it. An existing file keeps its owner, its permissions and its comments. Throws an error for the operator
 * if the file is not a valid key file or cannot be written.
 * @returns how many keys with this name the file had before
 */
export function addToKeyFile(
  file: string,
  { name, entry }: Pick<NewKey, 'name' | 'entry'>,
  waitMs = maxWaitMs,
): number {
  const target = attempt(file, 'read', () => targetOf(file));
  const next = `${target}.lock`;
  const descriptor = attempt(file, 'written', () => openNext(next, waitMs), target);
  try {
    const { text, attributes } = attempt(file, 'read', () => readExisting(target));
    const faults: string[] = [];
    const keys = readKeysFile(text, file, (path, message) =>
      faults.push(`${path} ${renderIssueMessage(message, namesAt('--', false))}`),
    );
    if (faults.length > 0) throw new Error(`The key was not added. ${faults.join('. ')}.`);
    const write = (): void => {
      writeSync(descriptor, withEntry(text, entry));
      if (attributes !== undefined) keepAttributes(descriptor, attributes);
      fsyncSync(descriptor);
      renameSync(next, target);
    };
    attempt(file, 'written', write, target);
    return keys?.filter((key) => key.name === name).length ?? 0;
  } catch (error) {
    rmSync(next, { force: true });
    throw error;
  } finally {
    closeSync(descriptor);
  }
}

/** Runs one step. Its error tells the operator what is wrong with the file. */
function attempt<Result>(file: string, done: 'read' | 'written', step: () => Result, target?: string): Result {
  try {
    return step();
  } catch (cause) {
    const owner = target === undefined ? '' : ownerHint(target);
    throw new Error(`The key was not added: ${file} cannot be ${done} (${(cause as Error).message})${owner}.`, {
      cause,
    });
  }
}

/** The file that is replaced: a link stays a link, even if its target does not exist yet. */
function targetOf(file: string): string {
  try {
    return realpathSync(file);
  } catch (error) {
    if (errorCodeOf(error) !== 'ENOENT') throw error;
    const isLink = lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
    return isLink ? targetOf(resolve(dirname(file), readlinkSync(file))) : file;
  }
}

/** Opens the file that replaces the key file. While it exists, no other addition reads or replaces the key file. */
function openNext(path: string, waitMs: number): number {
  const until = performance.now() + waitMs;
  const pause = new Int32Array(new SharedArrayBuffer(4));
  for (;;) {
    try {
      return openSync(path, 'wx', 0o600);
    } catch (cause) {
      if (errorCodeOf(cause) !== 'EEXIST') throw cause;
      const remedy = 'delete it if no other command is adding a key';
      if (performance.now() >= until) throw new Error(`${path} exists; ${remedy}`, { cause });
    }
    Atomics.wait(pause, 0, 0, 10);
  }
}

/** A key file as it is now, or the beginning of a new one. */
interface KeyFile {
  readonly text: string;
  readonly attributes?: Stats;
}

function keepAttributes(descriptor: number, { mode, uid, gid }: Stats): void {
  const own = fstatSync(descriptor);
  if (own.uid !== uid || own.gid !== gid) fchownSync(descriptor, uid, gid);
  fchmodSync(descriptor, mode & 0o777);
}

function readExisting(target: string): KeyFile {
  const attributes = statSync(target, { throwIfNoEntry: false });
  if (attributes === undefined) return { text: '[]\n' };
  if (!attributes.isFile()) throw new Error('it is not a file'); // a pipe would be waited for
  const text = readFileSync(target, 'utf8');
  return { text: text.trim() === '' ? '[]\n' : text, attributes };
}

/** The end of an error message about a file of another user. */
function ownerHint(target: string): string {
  const uid = statSync(target, { throwIfNoEntry: false })?.uid;
  return uid === undefined || uid === process.geteuid?.() ? '' : `; the file belongs to the user ${uid}`;
}

/** The text of a valid key file with one more entry at its end. Comments stay. */
function withEntry(text: string, entry: string): string {
  const { applyEdits, modify } = loadLibrary('jsonc-parser');
  const formattingOptions = { insertSpaces: true, tabSize: 2, eol: '\n' };
  return applyEdits(text, modify(text, [-1], JSON.parse(entry), { isArrayInsertion: true, formattingOptions }));
}
