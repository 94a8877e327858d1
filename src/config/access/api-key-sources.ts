import * as z from 'zod/mini';
import { type ApiKey, digestOfKey } from '../../auth/api-keys.ts';
import type { ReportIssue } from '../issues.ts';
import { matching, members } from '../options/option-kinds.ts';
import { flagOf } from '../options/option-names.ts';
import { type ServerConfig, userOf } from '../servers/configured-servers.ts';
import { apiKeysVariable, type Environment } from '../sources/environment-variables.ts';
import { expandWhole } from '../sources/expand-variables.ts';
import { checkValue } from '../sources/given-values.ts';
import { type JsoncPositions, readJsonc } from '../sources/read-jsonc.ts';

/** The user of a key. The name appears in logs, so it is one word. */
export const keyName = matching(
  /^[A-Za-z0-9][A-Za-z0-9._@+-]{0,127}$/,
  'must be 1 to 128 letters, digits and . _ @ + -, beginning with a letter or digit',
);

/** The form of a scope (RFC 6749, section 3.3). */
export const keyScope = matching(
  /^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/,
  'must be a scope: visible ASCII without " and \\',
);

const entry = members(
  {
    name: keyName,
    sha256: matching(
      /^[0-9a-f]{64}$/i,
      'must be 64 hexadecimal digits; mcp-gangway key alice creates a key and its hash, and printf %s KEY | sha256sum prints the hash of an existing key',
    ).check(z.toLowerCase()),
    expires: z.optional(z.iso.datetime({ offset: true, error: 'must be a time such as 2027-01-31T00:00:00Z' })),
    scopes: z.optional(z.array(keyScope, { error: 'must be a list of scopes, such as ["read"]' })),
  },
  'must be an object such as { "name": "alice", "sha256": "…" }',
);

const entries = z.array(entry, {
  error: 'must be a list such as [{ "name": "alice", "sha256": "…" }]; mcp-gangway key alice --add FILE writes it',
});

/**
 * Reads the text of a key file: a JSON list of `{name, sha256, expires?, scopes?}`, also with comments and trailing
 * commas. No fault repeats a value.
 * @param file the name of the file, for the paths of faults
 * @param onPositions receives the positions of the file's members, for faults
 * @returns the keys, or undefined after a fault was reported
 */
export function readKeysFile(
  text: string,
  file: string,
  report: ReportIssue,
  onPositions: (file: string, positions: JsoncPositions) => void = () => undefined,
): readonly ApiKey[] | undefined {
  const json = readJsonc(text.replace(/^\uFEFF/, ''));
  if (!json.ok) {
    const { line, column, message } = json.error;
    const isOtherFile = line === 1 && column === 1;
    report(`${file}:${line}:${column}`, (nameOf) =>
      isOtherFile
        ? `is not JSON, so this is probably not a file of API keys; correct the path in ${nameOf('auth.apiKeysFile')}, or write such a file with mcp-gangway key alice --add FILE`
        : `is not valid JSON: ${message}`,
    );
    return undefined;
  }
  onPositions(file, json.positions);
  const read = checkValue(entries, { path: `${file}: `, value: json.value }, (path, message) =>
    report(path.endsWith(': ') ? file : path, message),
  );
  if (read === undefined) return undefined;
  const duplicate = read.find(({ sha256 }, index) => read.findIndex((other) => other.sha256 === sha256) < index);
  if (duplicate !== undefined) {
    report(file, `has the key of ${duplicate.name} more than once; remove the others`);
    return undefined;
  }
  return read.map(({ name, sha256, expires, scopes }) => ({
    name,
    sha256,
    expiresAtMs: expires === undefined ? undefined : Date.parse(expires),
    scopes,
  }));
}

/** A shorter key could be guessed. */
const minKeyLength = 32;

/** The keys of the environment. */
export interface KeysOfEnvironment {
  readonly keys: readonly ApiKey[];
  /** True if the environment contains a key itself instead of its hash or of the name of a file. */
  readonly hasClear: boolean;
}

/**
 * Reads the keys of the environment: `name:sha256:hash` or `name:key`, separated by commas. These keys have all scopes
 * and do not expire. `${file:…}` reads an entry, or several, from a file.
 */
export function readKeysOfEnvironment(
  env: Environment,
  report: ReportIssue,
  readFile: (path: string) => string,
): KeysOfEnvironment {
  const text = env[apiKeysVariable] ?? '';
  if (text === '') return { keys: [], hasClear: false };
  let hasClear = false;
  const expanded = text.split(',').flatMap((entry, index) => {
    const whole = expandWhole(entry, `${apiKeysVariable}[${index}]`, { env: undefined, readFile, report });
    const entries = whole === undefined ? [] : String(whole.value).split(/[,\n]/);
    return entries
      .filter((each) => each.trim() !== '' || whole?.written === undefined)
      .map((each) => ({ entry: each, isInFile: whole?.written !== undefined }));
  });
  const keys = expanded.flatMap(({ entry, isInFile }, index) => {
    const [name = '', credential = ''] = entry.trim().split(/:(.*)/s, 2);
    const hash = /^sha256:([0-9a-f]{64})$/i.exec(credential)?.[1]?.toLowerCase();
    const isKey = /^[A-Za-z0-9._~+/-]+=*$/.test(credential);
    const isShort = isKey && credential.length < minKeyLength;
    if (keyName.safeParse(name).success && (hash !== undefined || (isKey && !isShort))) {
      hasClear ||= hash === undefined && !isInFile;
      return [{ name, sha256: hash ?? digestOfKey(credential) }];
    }
    report(
      `${apiKeysVariable}[${index}]`,
      isShort
        ? `is a plain key with fewer than ${minKeyLength} characters; run mcp-gangway key alice, and use the name:sha256:HASH that it prints`
        : `must be name:sha256:HASH, as mcp-gangway key alice prints it, or name:key with a key of at least ${minKeyLength} characters`,
    );
    return [];
  });
  return { keys, hasClear };
}

/**
 * Refuses plain keys that servers could read: a server of the gateway's user, or of root, sees the environment of the
 * gateway in /proc. A gateway with such servers needs hashes, or a file.
 */
export function checkClearKeys(
  { hasClear }: KeysOfEnvironment,
  servers: readonly ServerConfig[],
  report: ReportIssue,
): void {
  const readers = servers.filter(canReadEnvironment).map(({ name }) => name);
  if (!hasClear || readers.length === 0) return;
  const shown = readers.slice(0, maxShownServers).join(', ') + (readers.length > maxShownServers ? ', …' : '');
  const subject = readers.length === 1 ? 'server' : 'servers';
  report(
    apiKeysVariable,
    `contains plain keys. The ${subject} ${shown} can read them in /proc, like every process of the gateway's user. Replace each key with its hash, name:sha256:HASH (printf %s KEY | sha256sum), or use ${flagOf('auth.apiKeysFile')}`,
  );
}

/** Further readers are not named, so that the fault stays readable. */
const maxShownServers = 5;

const canReadEnvironment = ({ address, process }: ServerConfig): boolean => {
  const uid = process.user === undefined ? undefined : userOf(process.user).uid;
  return address === undefined && (uid === undefined || uid === 0 || uid === ownUid());
};

const ownUid = (): number | undefined => process.getuid?.();
