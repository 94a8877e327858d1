import { randomBytes } from 'node:crypto';
import { digestOfKey } from '../http/auth/api-keys.ts';

/** What every key begins with, so that programs that look for secrets in texts find it. */
const prefix = 'mcpgw_';

/** Makes an API key of 256 random bits, and its entry for the file of keys, which does not hold the key. */
export function makeKey(name: string): { readonly key: string; readonly entry: string } {
  const key = `${prefix}${randomBytes(32).toString('base64url')}`;
  return { key, entry: JSON.stringify({ name, sha256: digestOfKey(key) }) };
}
