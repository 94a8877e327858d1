import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto';

/** The keys that all instances share, the newest first; undefined while they cannot be read. */
export type NonceKeys = () => Promise<readonly [Buffer, ...Buffer[]] | undefined>;

/** A nonce of this gateway that has not expired. */
export interface KnownNonce {
  /** The time at which the nonce was made, in milliseconds since 1970. */
  readonly madeAtMs: number;
  /** True if every instance accepts the nonce; false if only this instance does. */
  readonly isShared: boolean;
}

/**
 * How long a nonce is accepted, and the age from which responses carry the next one. Used proofs are remembered for this
 * time, so it bounds the memory for them.
 */
export const nonceLifetimeMs = 120_000;
const renewalMs = nonceLifetimeMs / 2;

/** How far the clocks of instances may differ. */
export const instanceSkewMs = 1_000;

const [timeBytes, instanceBytes, macBytes] = [6, 8, 16];
const everyInstance = Buffer.alloc(instanceBytes);

/**
 * Makes and recognises the nonces of DPoP proofs (RFC 9449, section 9). A nonce contains its time and the instance that
 * accepts it, and a MAC, so no instance stores any. All instances have the same keys.
 */
export class ProofNonces {
  readonly #keys: NonceKeys;
  readonly #now: () => number;
  /** A new name for each process: a nonce from before a restart is not accepted, since its uses are forgotten. */
  readonly #instance = randomBytes(instanceBytes);
  readonly #derived = new WeakMap<Buffer, Buffer>();

  /** @param now returns milliseconds since 1970 */
  constructor(keys: NonceKeys, now: () => number) {
    this.#keys = keys;
    this.#now = now;
  }

  /**
   * Makes a nonce; undefined while there are no keys.
   * @param isShared true if all instances may accept the nonce
   */
  async make(isShared: boolean): Promise<string | undefined> {
    const keys = await this.#keys();
    if (keys === undefined) return undefined;
    const head = Buffer.alloc(timeBytes + instanceBytes);
    head.writeUIntBE(this.#now(), 0, timeBytes);
    (isShared ? everyInstance : this.#instance).copy(head, timeBytes);
    return Buffer.concat([head, this.#mac(keys[0], head)]).toString('base64url');
  }

  /** Recognises a nonce. Returns undefined for any other text, and for a nonce that has expired. */
  async find(nonce: string): Promise<KnownNonce | undefined> {
    const bytes = Buffer.from(nonce.slice(0, 64), 'base64url');
    if (bytes.length !== timeBytes + instanceBytes + macBytes) return undefined;
    const head = bytes.subarray(0, timeBytes + instanceBytes);
    const isShared = head.subarray(timeBytes).equals(everyInstance);
    if (!isShared && !head.subarray(timeBytes).equals(this.#instance)) return undefined;
    const madeAtMs = head.readUIntBE(0, timeBytes);
    const ageMs = this.#now() - madeAtMs;
    if (ageMs > nonceLifetimeMs || ageMs < -instanceSkewMs) return undefined;
    const keys = (await this.#keys()) ?? [];
    const mac = bytes.subarray(head.length);
    return keys.some((key) => timingSafeEqual(this.#mac(key, head), mac)) ? { madeAtMs, isShared } : undefined;
  }

  /** True if a response should carry the next nonce. */
  isAging({ madeAtMs }: KnownNonce): boolean {
    return this.#now() - madeAtMs > renewalMs;
  }

  #mac(secret: Buffer, head: Buffer): Buffer {
    const key = this.#derived.get(secret) ?? Buffer.from(hkdfSync('sha256', secret, '', 'mcp-gangway dpop nonces', 32));
    this.#derived.set(secret, key);
    return createHmac('sha256', key).update(head).digest().subarray(0, macBytes);
  }
}
