import { createHmac, hkdfSync } from 'node:crypto';
import type { ForwardedHeaders } from '../../protocol/http/forwarded-headers.ts';
import type { StateKeys } from './state-keys.ts';

/**
 * Marks by which the credentials of clients for their server are recognised, on any instance that has the same keys, and
 * which may lie in Redis: without the key nobody can try what they were made of (P12).
 */
export class CredentialMarks {
  readonly #keys: StateKeys;
  readonly #derived = new WeakMap<Buffer, Buffer>();

  constructor(keys: StateKeys) {
    this.#keys = keys;
  }

  /**
   * The mark of what a request brings for this server: 43 characters, or none for nothing. Rejects with `StoreUnavailable`
   * while there is no key.
   */
  async of(server: string, values: ForwardedHeaders): Promise<string> {
    const entries = Object.entries(values).sort(([a], [b]) => (a < b ? -1 : 1));
    if (entries.length === 0) return '';
    const [secret] = await this.#keys.all();
    const key = this.#derived.get(secret) ?? derive(secret);
    this.#derived.set(secret, key);
    return createHmac('sha256', key)
      .update(JSON.stringify([server, entries]))
      .digest('base64url');
  }
}

/** The secret seals the states of clients as well: each use has a key of its own. */
const derive = (secret: Buffer): Buffer =>
  Buffer.from(hkdfSync('sha256', secret, '', 'mcp-gangway credential marks', 32));
