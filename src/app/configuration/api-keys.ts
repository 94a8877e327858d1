import { z } from 'zod';
import { type ApiKey, digestOfKey } from '../../http/auth/api-keys.ts';
import { apiKeysVariable, type Environment } from './environment.ts';
import type { Report } from './fault.ts';
import { checkValue } from './given-values.ts';
import { findJsonFault } from './json-fault.ts';
import { matching } from './option-kinds.ts';

/** Who shows a key: stands in logs, so it is one word. */
export const keyName = matching(
  /^[A-Za-z0-9][A-Za-z0-9._@+-]{0,127}$/,
  'must be 1 to 128 letters, digits and . _ @ + -, beginning with a letter or digit',
);

/** What a scope may be (RFC 6749, section 3.3). */
const scope = matching(/^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/, 'must be a scope: visible ASCII without " and \\');

const entry = z.strictObject(
  {
    name: keyName,
    sha256: matching(/^[0-9a-f]{64}$/i, 'must be 64 hexadecimal digits, as mcp-gangway key prints them').toLowerCase(),
    expires: z.iso.datetime({ offset: true, error: 'must be a time such as 2027-01-31T00:00:00Z' }).optional(),
    scopes: z.array(scope, { error: 'must be a list of scopes' }).optional(),
  },
  {
    error: (issue) =>
      issue.code === 'unrecognized_keys'
        ? 'has a key that is none of name, sha256, expires, scopes'
        : 'must be an object with name and sha256',
  },
);

const entries = z.array(entry, { error: 'must be a JSON list of objects with name and sha256' });

/**
 * Reads the text of a file of keys: a JSON list of `{name, sha256, expires?, scopes?}`.
 * @param file its name, for the paths of faults; none of them repeats a value
 * @returns the keys; undefined if anything is wrong with them, which was reported
 */
export function readKeysFile(text: string, file: string, report: Report): readonly ApiKey[] | undefined {
  const json = text.replace(/^\uFEFF/, '');
  const fault = findJsonFault(json);
  if (fault !== undefined) {
    report(`${file}:${fault.line}:${fault.column}`, `is not valid JSON: ${fault.message}`);
    return undefined;
  }
  const read = checkValue(entries, { path: `${file}: `, value: JSON.parse(json) }, (path, message) =>
    report(path.endsWith(': ') ? `${path}the file` : path, message),
  );
  if (read === undefined) return undefined;
  const twice = read.find(({ sha256 }, index) => read.findIndex((other) => other.sha256 === sha256) < index);
  if (twice !== undefined) {
    report(file, `has the key of ${twice.name} more than once`);
    return undefined;
  }
  return read.map(({ name, sha256, expires, scopes }) => ({
    name,
    sha256,
    expiresAtMs: expires === undefined ? undefined : Date.parse(expires),
    scopes,
  }));
}

/** A key that is shorter could be found by trying. */
const minKeyLength = 32;

/** The keys that the environment has, as `name:key` parted by commas; they allow everything, and do not expire. */
export function readKeysOfEnvironment(env: Environment, report: Report): readonly ApiKey[] {
  const text = env[apiKeysVariable] ?? '';
  if (text === '') return [];
  return text.split(',').flatMap((pair, index) => {
    const [name = '', key = ''] = pair.trim().split(/:(.*)/s, 2);
    const isGood = keyName.safeParse(name).success && /^[A-Za-z0-9._~+/-]+=*$/.test(key) && key.length >= minKeyLength;
    if (isGood) return [{ name, sha256: digestOfKey(key) }];
    report(
      `${apiKeysVariable}[${index}]`,
      `must be name:key, with a key of ${minKeyLength} characters or more, such as mcp-gangway key makes`,
    );
    return [];
  });
}
