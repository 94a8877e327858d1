import * as z from 'zod/mini';
import type { ApiKey } from '../../core/auth/api-keys.ts';
import type { ReportIssue } from '../issues.ts';
import { matching, members } from '../options/option-kinds.ts';
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

/**
 * Reads the keys of the environment: `name:sha256:hash`, separated by commas. These keys have all scopes and do not
 * expire. A key itself is refused: each server of the gateway's user sees the environment of the gateway in /proc.
 */
export function readKeysOfEnvironment(
  env: Environment,
  report: ReportIssue,
  readFile: (path: string) => string,
): readonly ApiKey[] {
  const text = env[apiKeysVariable] ?? '';
  const whole = text === '' ? undefined : expandWhole(text, apiKeysVariable, { env: undefined, readFile, report });
  const entries = whole === undefined ? [] : String(whole.value).trim().split(/[,\n]/);
  return entries.flatMap((entry, index) => {
    const [, name = '', sha256 = ''] = /^([^:]*):sha256:([0-9a-f]{64})$/i.exec(entry.trim()) ?? [];
    if (keyName.safeParse(name).success) return [{ name, sha256: sha256.toLowerCase() }];
    report(
      `${apiKeysVariable}[${index}]`,
      'must be name:sha256:HASH, as mcp-gangway key alice prints it; printf %s KEY | sha256sum prints the hash of an existing key',
    );
    return [];
  });
}
