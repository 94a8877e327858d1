import { z } from 'zod';
import { type ApiKey, digestOfKey } from '../../auth/api-keys.ts';
import type { ReportIssue } from '../issues.ts';
import { matching } from '../options/option-kinds.ts';
import { flagOf } from '../options/option-names.ts';
import { apiKeysVariable, type Environment } from '../sources/environment-variables.ts';
import { checkValue } from '../sources/given-values.ts';
import { findJsonSyntaxError } from '../sources/json-syntax.ts';

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
    sha256: matching(/^[0-9a-f]{64}$/i, 'must be 64 hexadecimal digits; mcp-gangway key prints them').toLowerCase(),
    expires: z.iso.datetime({ offset: true, error: 'must be a time such as 2027-01-31T00:00:00Z' }).optional(),
    scopes: z.array(scope, { error: 'must be a list of scopes' }).optional(),
  },
  {
    error: (issue) =>
      issue.code === 'unrecognized_keys'
        ? 'has an unknown key; known keys are name, sha256, expires and scopes'
        : 'must be an object with name and sha256',
  },
);

const entries = z.array(entry, { error: 'must be a JSON list of objects with name and sha256' });

/**
 * Reads the text of a file of keys: a JSON list of `{name, sha256, expires?, scopes?}`.
 * @param file its name, for the paths of faults; none of them repeats a value
 * @returns the keys; undefined if anything is wrong with them, which was reported
 */
export function readKeysFile(text: string, file: string, report: ReportIssue): readonly ApiKey[] | undefined {
  const json = text.replace(/^\uFEFF/, '');
  const fault = findJsonSyntaxError(json);
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
    report(file, `has the key of ${twice.name} more than once; remove the others`);
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

/** Keys of the environment. */
export interface KeysOfEnvironment {
  readonly keys: readonly ApiKey[];
  /** True if a key itself stands there, and not only its hash. */
  readonly hasClear: boolean;
}

/**
 * The keys that the environment has, as `name:sha256:hash` or `name:key`, separated by commas; they allow everything, and do not
 * expire.
 */
export function readKeysOfEnvironment(env: Environment, report: ReportIssue): KeysOfEnvironment {
  const text = env[apiKeysVariable] ?? '';
  if (text === '') return { keys: [], hasClear: false };
  let hasClear = false;
  const keys = text.split(',').flatMap((entry, index) => {
    const [name = '', shown = ''] = entry.trim().split(/:(.*)/s, 2);
    const hash = /^sha256:([0-9a-f]{64})$/i.exec(shown)?.[1]?.toLowerCase();
    const isKey = /^[A-Za-z0-9._~+/-]+=*$/.test(shown) && shown.length >= minKeyLength;
    if (keyName.safeParse(name).success && (hash !== undefined || isKey)) {
      hasClear ||= hash === undefined;
      return [{ name, sha256: hash ?? digestOfKey(shown) }];
    }
    report(
      `${apiKeysVariable}[${index}]`,
      `must be name:sha256:hash, as mcp-gangway key prints it, or name:key with a key of at least ${minKeyLength} characters`,
    );
    return [];
  });
  return { keys, hasClear };
}

/**
 * Warns of keys in clear that servers can read: those that run as the user of the gateway see its environment in /proc.
 * @param servers the STDIO servers; undefined for the user of the gateway
 */
export function clearKeysWarning(
  { hasClear }: KeysOfEnvironment,
  servers: readonly { readonly name: string; readonly uid?: number | undefined }[],
): string | undefined {
  const readers = servers.filter(({ uid }) => uid === undefined).map(({ name }) => name);
  if (!hasClear || readers.length === 0) return undefined;
  return `${apiKeysVariable} contains plain keys. These servers run as the gateway's user and can read its environment: ${readers.join(', ')}. Use hashes (name:sha256:hash, as mcp-gangway key prints them) or the file of ${flagOf('apiKeysFile')}.`;
}
