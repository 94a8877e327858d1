import { randomBytes } from 'node:crypto';
import { digestOfKey } from '../../auth/api-keys.ts';

/** What every key begins with, so that programs that look for secrets in texts find it. */
const prefix = 'mcpgw_';

/** A new key, and what the gateway gets of it, which does not hold the key. */
export interface NewKey {
  readonly key: string;
  /** For the file of keys. */
  readonly entry: string;
  /** For the variable with keys. */
  readonly variable: string;
}

/** Makes an API key of 256 random bits. */
export function makeKey(name: string): NewKey {
  const key = `${prefix}${randomBytes(32).toString('base64url')}`;
  const sha256 = digestOfKey(key);
  return { key, entry: JSON.stringify({ name, sha256 }), variable: `${name}:sha256:${sha256}` };
}
