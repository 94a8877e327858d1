// src/features/eras/keys: seals request states, and recognises credentials, with keys that all instances share.
import { createHmac, hkdfSync } from 'node:crypto';
import type { ForwardedHeaders } from '../protocol/http/forwarded-headers.ts';
import type { StateKeys } from './state-keys.ts';

/**
 * Makes marks that identify a client's credentials for its server, on any instance with the same keys. Marks may lie in
 * Redis: without the key nobody can test guesses against them (P12).
 */
export class CredentialMarks {
  readonly #keys: StateKeys;
  readonly #derived = new WeakMap<Buffer, Buffer>();

  constructor(keys: StateKeys) {
    this.#keys = keys;
  }

  /**
   * Returns the mark of a request's credentials for this server: 43 characters, or an empty string for none. Rejects
   * with `StoreUnavailable` while there is no key.
   */
  async markOf(server: string, values: ForwardedHeaders): Promise<string> {
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

/** Derives a key for marks: the secret also seals request states, and each use has a key of its own. */
const derive = (secret: Buffer): Buffer =>
  Buffer.from(hkdfSync('sha256', secret, '', 'mcp-gangway credential marks', 32));
