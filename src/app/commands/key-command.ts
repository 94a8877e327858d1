import { randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  openSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { readKeysFile } from '../../config/access/api-key-sources.ts';
import type { KeyRequest } from '../../config/access/key-request.ts';
import { renderIssueMessage } from '../../config/issues.ts';
import { flagOf, namesAt } from '../../config/options/option-names.ts';
import { digestOfKey } from '../../core/auth/api-keys.ts';
import { loadLibrary } from '../../core/util/load-library.ts';
import { errorCodeOf } from '../../core/util/text/error-code.ts';
import { type Outcome, refused } from './outcome.ts';

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
type LimitedKey = Omit<NewKey, 'variable'> & Partial<Pick<NewKey, 'variable'>>;

/** Limits what a new key may be used for, and for how long. Without limits, the key stays as it is. */
export function limitKey(
  { name, key, entry, variable }: NewKey,
  { scopes, expires }: Pick<KeyRequest, 'scopes' | 'expires'>,
): LimitedKey {
  const limits = { ...(expires !== undefined && { expires }), ...(scopes.length > 0 && { scopes }) };
  if (Object.keys(limits).length === 0) return { name, key, entry, variable };
  return { name, key, entry: JSON.stringify({ ...JSON.parse(entry), ...limits }) };
}

/** Creates a key. With a file, prints only the key itself, for its user. */
export function createKey({ name, addTo: file, ...limits }: KeyRequest): Outcome {
  const made = limitKey(makeKey(name), limits);
  if (file === undefined) {
    const entries = made.variable === undefined ? 'line is its entry' : 'two lines are its entries';
    const places = `for the ${flagOf('auth.apiKeysFile')} file (a JSON list)${made.variable === undefined ? '' : ' and for GANGWAY_API_KEYS'}`;
    const stderr = `Save this key: it is shown only once. The next ${entries} ${places}.\n`;
    const lines = [made.key, made.entry, made.variable].filter((line) => line !== undefined);
    return { stderr, stdout: lines.map((line) => `${line}\n`).join(''), exitCode: 0 };
  }
  let earlier: number;
  try {
    earlier = addToKeyFile(file, made);
  } catch (error) {
    return refused((error as Error).message);
  }
  const added = `Added the key to ${file}. Give this line to ${name}; it is shown only once. A gateway with ${flagOf('auth.apiKeysFile')} ${file} accepts the key within seconds.\n`;
  const others =
    earlier === 0
      ? ''
      : `The file already had ${earlier === 1 ? 'a key with this name, which stays' : `${earlier} keys with this name, which stay`} valid. To revoke a key, delete its entry.\n`;
  return { stderr: added + others, stdout: `Authorization: Bearer ${made.key}\n`, exitCode: 0 };
}

/** How long an addition waits for others to the same file. Each takes milliseconds. */
const maxWaitMs = 5_000;

/**
 * Adds the entry of a key to a key file, and creates the file if it does not exist. Only the end of the file is written,
 * so that a running gateway never reads half of it, and that the file keeps its owner, its permissions and its comments.
 * Additions at the same time wait for each other. Only the owner of a new file can read it. Throws an error for the
 * operator if the file is not a valid key file or cannot be written.
 * @returns how many keys with this name the file had before
 */
export function addToKeyFile(
  file: string,
  { name, entry }: Pick<NewKey, 'name' | 'entry'>,
  waitMs = maxWaitMs,
): number {
  const descriptor = attempt(file, 'written', () => openSync(file, constants.O_RDWR | constants.O_CREAT, 0o600));
  try {
    attempt(file, 'read', () => requireFile(descriptor)); // a pipe would be waited for
    const lock = `${realpathSync(file)}.lock`;
    attempt(file, 'written', () => takeLock(lock, waitMs));
    try {
      return addTo(descriptor, file, name, entry);
    } finally {
      rmSync(lock);
    }
  } finally {
    closeSync(descriptor);
  }
}

function addTo(descriptor: number, file: string, name: string, entry: string): number {
  const found = attempt(file, 'read', () => readFileSync(descriptor, 'utf8'));
  const text = found.trim() === '' ? '' : found;
  const faults: string[] = [];
  const keys = readKeysFile(text || '[]', file, (path, message) =>
    faults.push(`${path} ${renderIssueMessage(message, namesAt('--', false))}`),
  );
  if (faults.length > 0) throw new Error(`The key was not added. ${faults.join('. ')}.`);
  attempt(file, 'written', () => {
    const [before, after] = [Buffer.from(text), Buffer.from(withEntry(text || '[]\n', entry))];
    const same = before.findIndex((byte, index) => byte !== after[index]);
    const start = same < 0 ? before.length : same;
    writeSync(descriptor, after, start, after.length - start, start);
    fsyncSync(descriptor);
  });
  return keys?.filter((key) => key.name === name).length ?? 0;
}

/** Runs one step. Its error tells the operator what is wrong with the file. */
function attempt<Result>(file: string, done: 'read' | 'written', step: () => Result): Result {
  try {
    return step();
  } catch (cause) {
    const reason =
      errorCodeOf(cause) === 'ENOENT'
        ? 'its folder does not exist; create the folder, or correct the path'
        : (cause as Error).message;
    throw new Error(`The key was not added: ${file} cannot be ${done} (${reason})${ownerHint(file)}.`, { cause });
  }
}

function requireFile(descriptor: number): void {
  if (!fstatSync(descriptor).isFile()) throw new Error('it is not a file');
}

/** Creates the file of a lock. While it exists, no other addition reads or writes the key file. */
function takeLock(path: string, waitMs: number): void {
  const until = performance.now() + waitMs;
  const pause = new Int32Array(new SharedArrayBuffer(4));
  for (;;) {
    try {
      return closeSync(openSync(path, 'wx', 0o600));
    } catch (cause) {
      if (errorCodeOf(cause) !== 'EEXIST') throw cause;
      const remedy = 'delete it if no other command is adding a key';
      if (performance.now() >= until) throw new Error(`${path} exists; ${remedy}`, { cause });
    }
    Atomics.wait(pause, 0, 0, 10);
  }
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
