import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto';
import { parseOwn } from '../protocol/json.ts';
import type { Principal } from '../protocol/principal.ts';
import type { StateKeys } from './state-keys.ts';

/**
 * The request that a state is bound to. With any other request the state is refused (2026-07-28, basic/patterns/mrtr,
 * "Server Requirements").
 */
export interface RequestStateBinding {
  readonly principal: Principal;
  /** The name of the configured server. */
  readonly server: string;
  /** `requestDigest` of the request, and the mark of its credentials. */
  readonly digest: string;
}

/** The content of a state. */
export interface RequestStateContent<T> {
  /** The round that asked for input, from 1. */
  readonly round: number;
  /** When the state expires, by the system's clock, since other instances check it. */
  readonly expiresAtMs: number;
  /** The data that the maker needs to continue; a JSON value. */
  readonly value: T;
}

/**
 * The longest state, unless its maker has another limit (P8). A longer one is refused before anything is computed, and is never made. It has room for the
 * ids of a hundred questions, each as long as an id may be.
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
 * Seals and opens the `requestState` of requests that wait for input, on any instance with the same keys.
 *
 * A client can send any text as a state, so states are encrypted and authenticated together with their binding. Only
 * the same principal, server and request can use a state, and nobody can read or change it. A state can be opened more
 * than once: its maker has to prevent double use.
 *
 * Format: base64url of version, mark of the key, salt, nonce, cipher text, tag. The key of each state is derived with
 * its salt, so random nonces cannot collide under one key, however many states are made.
 */
export class RequestStates {
  readonly #keys: StateKeys;
  readonly #now: () => number;
  readonly #maxLength: number;

  /** @param options.now returns milliseconds of the system's clock */
  constructor(keys: StateKeys, { now = (): number => Date.now(), maxLength = maxStateLength } = {}) {
    this.#keys = keys;
    this.#now = now;
    this.#maxLength = maxLength;
  }

  /** Resolves once states can be sealed, now and later. Rejects with `StoreUnavailable` while there is no key. */
  async ready(): Promise<void> {
    await this.#keys.all();
  }

  /** Seals a state; undefined if it would be too long. Rejects with `StoreUnavailable` while there is no key. */
  async seal<T>(binding: RequestStateBinding, content: RequestStateContent<T>): Promise<string | undefined> {
    const plain = Buffer.from(JSON.stringify(content));
    if (Math.ceil(((headBytes + plain.length + tagBytes) * 4) / 3) > this.#maxLength) return undefined;
    const [secret] = await this.#keys.all();
    const salt = randomBytes(saltBytes);
    const nonce = randomBytes(nonceBytes);
    const head = Buffer.concat([Buffer.of(version), markOf(secret), salt, nonce]);
    const box = createCipheriv(cipher, keyOf(secret, salt), nonce, { authTagLength: tagBytes });
    box.setAAD(boundTo(binding, head));
    return Buffer.concat([head, box.update(plain), box.final(), box.getAuthTag()]).toString('base64url');
  }

  /**
   * Opens a state; undefined if it was sealed for another binding or by another key, or has expired. Rejects with
   * `StoreUnavailable` while the keys are not available.
   */
  async open<T>(binding: RequestStateBinding, state: string): Promise<RequestStateContent<T> | undefined> {
    if (state.length > this.#maxLength) return undefined;
    const sealed = Buffer.from(state, 'base64url');
    // The decoder is lenient: only the canonical text is accepted.
    if (sealed.length < headBytes + tagBytes || sealed.toString('base64url') !== state) return undefined;
    if (sealed[0] !== version) return undefined;
    const secret = await this.#find(sealed.subarray(1, 1 + markBytes));
    const plain = secret && unseal(secret, sealed, binding);
    if (plain === undefined) return undefined;
    const content = parseOwn(plain) as RequestStateContent<T>;
    return content.expiresAtMs > this.#now() ? content : undefined;
  }

  async #find(mark: Buffer): Promise<Buffer | undefined> {
    const isMarked = (secret: Buffer): boolean => markOf(secret).equals(mark);
    return (await this.#keys.all()).find(isMarked) ?? (await this.#keys.reread()).find(isMarked);
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
    return undefined; // a wrong tag is expected, and carries no further information
  }
}

const keyOf = (secret: Buffer, salt: Buffer): Buffer =>
  Buffer.from(hkdfSync('sha256', secret, salt, 'mcp-gangway request state', 32));

/** Returns a mark that distinguishes keys and reveals nothing of them. */
const markOf = (secret: Buffer): Buffer =>
  createHash('sha256').update('mcp-gangway state key mark').update(secret).digest().subarray(0, markBytes);

function boundTo({ principal, server, digest }: RequestStateBinding, head: Buffer): Buffer {
  const { issuer, subject, client } = principal;
  return Buffer.concat([head, Buffer.from(JSON.stringify([issuer, subject, client, server, digest]))]);
}
