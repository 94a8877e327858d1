import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto';
import type { Principal } from '../../protocol/principal.ts';
import type { StateKeys } from './state-keys.ts';

/** What a state holds for: shown with anything else it is refused (2026-07-28, basic/patterns/mrtr, "Server Requirements"). */
export interface RequestStateBinding {
  readonly principal: Principal;
  /** The name of the configured server. */
  readonly server: string;
  /** `digestOf` the request. */
  readonly digest: string;
}

/** What is in a state. */
export interface RequestStateContent<T> {
  /** Which round of the request asked for input, from 1. */
  readonly round: number;
  /** When it stops to hold, by the system's clock: it is shown to other instances. */
  readonly expiresAtMs: number;
  /** Whatever its maker needs to go on; a value of JSON. */
  readonly value: T;
}

/**
 * A longer one is none (P8): it is refused before anything is computed, and none is made. There is room for the ids of a
 * hundred questions, each as long as an id may be.
 */
export const maxStateLength = 48 * 1024;

const cipher = 'aes-256-gcm';
const version = 1;
const saltBytes = 16;
const nonceBytes = 12;
const tagBytes = 16;
const markBytes = 4;
const headBytes = 1 + markBytes + saltBytes + nonceBytes;

/**
 * Makes the `requestState` of requests that wait for input, and reads it again, on any instance that has the same keys. It
 * comes back as anybody may have written it, so it is encrypted and authenticated, with all that it is bound to: who cannot
 * show the same principal, server and request cannot use it, and nobody can read or change it. That it is used once only is
 * its maker's to see to.
 *
 * base64url of: version, mark of the key, salt, nonce, cipher text, tag. The key of each is derived by its salt, so that
 * random nonces cannot meet under one key, however many are made.
 */
export class RequestStates {
  readonly #keys: StateKeys;
  readonly #now: () => number;

  /** @param now milliseconds of the system's clock */
  constructor(keys: StateKeys, now: () => number = Date.now) {
    this.#keys = keys;
    this.#now = now;
  }

  /** Resolves when states can be sealed, which they then can for ever. Rejects with `StoreUnavailable` while there is no key. */
  async ready(): Promise<void> {
    await this.#keys.all();
  }

  /** The state as text; undefined if it would be longer than one may be. Rejects with `StoreUnavailable` while there is no key. */
  async seal<T>(binding: RequestStateBinding, content: RequestStateContent<T>): Promise<string | undefined> {
    const plain = Buffer.from(JSON.stringify(content));
    if (Math.ceil(((headBytes + plain.length + tagBytes) * 4) / 3) > maxStateLength) return undefined;
    const [secret] = await this.#keys.all();
    const salt = randomBytes(saltBytes);
    const nonce = randomBytes(nonceBytes);
    const head = Buffer.concat([Buffer.of(version), markOf(secret), salt, nonce]);
    const box = createCipheriv(cipher, keyOf(secret, salt), nonce, { authTagLength: tagBytes });
    box.setAAD(boundTo(binding, head));
    return Buffer.concat([head, box.update(plain), box.final(), box.getAuthTag()]).toString('base64url');
  }

  /**
   * What is in a state that was sealed for this; undefined if it was not, or not by these keys, or has expired. Rejects with
   * `StoreUnavailable` while the keys cannot be had.
   */
  async open<T>(binding: RequestStateBinding, state: string): Promise<RequestStateContent<T> | undefined> {
    if (state.length > maxStateLength) return undefined;
    const sealed = Buffer.from(state, 'base64url');
    // The decoder is lenient: only what it would write itself is the text that was made.
    if (sealed.length < headBytes + tagBytes || sealed.toString('base64url') !== state) return undefined;
    if (sealed[0] !== version) return undefined;
    const secret = await this.#find(sealed.subarray(1, 1 + markBytes));
    const plain = secret && unseal(secret, sealed, binding);
    if (plain === undefined) return undefined;
    const content = JSON.parse(plain.toString()) as RequestStateContent<T>;
    return content.expiresAtMs > this.#now() ? content : undefined;
  }

  async #find(mark: Buffer): Promise<Buffer | undefined> {
    const isMarked = (secret: Buffer): boolean => markOf(secret).equals(mark);
    return (await this.#keys.all()).find(isMarked) ?? (await this.#keys.afresh()).find(isMarked);
  }
}

function unseal(secret: Buffer, sealed: Buffer, binding: RequestStateBinding): Buffer | undefined {
  const head = sealed.subarray(0, headBytes);
  const salt = head.subarray(1 + markBytes, -nonceBytes);
  const box = createDecipheriv(cipher, keyOf(secret, salt), head.subarray(-nonceBytes), { authTagLength: tagBytes });
  box.setAAD(boundTo(binding, head));
  box.setAuthTag(sealed.subarray(-tagBytes));
  const plain = box.update(sealed.subarray(headBytes, -tagBytes));
  try {
    return Buffer.concat([plain, box.final()]);
  } catch {
    return undefined; // the tag does not fit: an expected outcome, of which nothing more is known
  }
}

const keyOf = (secret: Buffer, salt: Buffer): Buffer =>
  Buffer.from(hkdfSync('sha256', secret, salt, 'mcp-gangway request state', 32));

/** Tells keys apart, and nothing of what they are. */
const markOf = (secret: Buffer): Buffer =>
  createHash('sha256').update('mcp-gangway state key mark').update(secret).digest().subarray(0, markBytes);

function boundTo({ principal, server, digest }: RequestStateBinding, head: Buffer): Buffer {
  const { issuer, subject, client } = principal;
  return Buffer.concat([head, Buffer.from(JSON.stringify([issuer, subject, client, server, digest]))]);
}
