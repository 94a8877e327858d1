import { randomBytes } from 'node:crypto';
import { digestOfKey } from '../../auth/api-keys.ts';

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
