import { createLocalJWKSet, type JWTVerifyGetKey } from 'jose';
import { detach } from '../../../core/util/boundary.ts';
import { UnusableDocument } from './fetch-json.ts';

/** The keys of an issuer at one time. */
export interface KeySet {
  /** Finds the key for a token's header. */
  readonly keyFor: JWTVerifyGetKey;
  /** The text of the key document, to notice a changed document. */
  readonly text: string;
}

/** The source of an issuer's keys, and the listeners for failures. */
export interface IssuerKeysOptions {
  /** Fetches the document with the keys (RFC 7517, section 5). */
  readonly fetchKeys: () => Promise<Readonly<Record<string, unknown>>>;
  /** How long keys remain usable after the time of their refresh, in milliseconds. */
  readonly staleMs: number;
  /** Returns the time, in milliseconds since 1970. */
  readonly now: () => number;
  /** Called for the first failure of a series. */
  readonly onFailed: (cause: unknown) => void;
  /** Called for the first success after failures. */
  readonly onRecovered: () => void;
}

/** Keys in use are fetched again after this time, so that a revoked key becomes invalid. */
const refreshMs = 10 * 60_000;

/**
 * The most keys of one issuer (P8). A token that names no key is tried with each of them, and anyone can send such tokens.
 * Issuers publish fewer than ten.
 */
const maxKeys = 100;

/** The least time between fetches, however many unknown keys tokens name: anyone can name unknown keys. */
const pauseMs = 10_000;

/** As above, while there are no keys at all: every client waits for an issuer that starts after the gateway. */
const firstPauseMs = 500;

/**
 * The keys of one issuer. They are fetched when a token needs them, again from time to time, and when a token names an
 * unknown key (rotation). While the issuer is unreachable, known keys remain usable for a bounded time.
 */
export class IssuerKeys {
  readonly #options: IssuerKeysOptions;
  #known: KeySet | undefined;
  /** The time of the last successful fetch. */
  #fetchedAtMs = 0;
  #triedAtMs = Number.NEGATIVE_INFINITY;
  #isFailing = false;
  #fetching: Promise<void> | undefined;

  constructor(options: IssuerKeysOptions) {
    this.#options = options;
  }

  /**
   * Returns the keys if they may still be used, and fetches them again in the background if that is due. A token that
   * they verified is valid while this is the same object.
   */
  use(): KeySet | undefined {
    if (this.#known !== undefined && this.#ageMs > refreshMs) detach('request', this.refresh());
    return this.#usable;
  }

  get #usable(): KeySet | undefined {
    return this.#ageMs > refreshMs + this.#options.staleMs ? undefined : this.#known;
  }

  get #pauseMs(): number {
    return this.#usable === undefined && this.#isFailing ? firstPauseMs : pauseMs;
  }

  get #ageMs(): number {
    return this.#options.now() - this.#fetchedAtMs;
  }

  /** True if the last fetch failed. A key that is not among the known ones may then exist all the same. */
  get isFailing(): boolean {
    return this.#isFailing;
  }

  /** Fetches the keys, unless that was tried a moment ago. Resolves with the keys that may be used afterwards. */
  async refresh(): Promise<KeySet | undefined> {
    const { now } = this.#options;
    if (this.#fetching === undefined && now() - this.#triedAtMs >= this.#pauseMs) {
      this.#triedAtMs = now();
      this.#fetching = this.#fetch().finally(() => {
        this.#fetching = undefined;
      });
    }
    await this.#fetching;
    return this.#usable;
  }

  async #fetch(): Promise<void> {
    const { fetchKeys, now, onFailed, onRecovered } = this.#options;
    try {
      const document = await fetchKeys();
      const text = JSON.stringify(document);
      if (text !== this.#known?.text) this.#known = { keyFor: readKeys(document), text };
      this.#fetchedAtMs = now();
      if (this.#isFailing) onRecovered();
      this.#isFailing = false;
    } catch (cause) {
      if (!this.#isFailing) onFailed(cause);
      this.#isFailing = true;
    }
  }
}

/**
 * Reads a key set and throws if it is unusable. An empty set counts as unusable: with it every token would be refused.
 */
function readKeys(document: Readonly<Record<string, unknown>>): JWTVerifyGetKey {
  const { keys } = document;
  if (!Array.isArray(keys) || keys.length === 0) throw new UnusableDocument('the key set contains no usable key');
  if (keys.length > maxKeys) throw new UnusableDocument(`the key set contains more than ${maxKeys} keys`);
  return createLocalJWKSet({ keys }); // checks each key
}
