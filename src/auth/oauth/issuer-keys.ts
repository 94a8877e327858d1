import { createLocalJWKSet, type JWTVerifyGetKey } from 'jose';
import { detach } from '../../util/boundary.ts';
import { UnusableDocument } from './fetch-json.ts';

/** The keys of an issuer as they were at one time. */
export interface KeySet {
  /** Finds the key for a token's header. */
  readonly keyFor: JWTVerifyGetKey;
  /** The document, to see whether the next one is another. */
  readonly text: string;
}

/** What the keys of an issuer need. */
export interface IssuerKeysOptions {
  /** Gets the document with the keys (RFC 7517, section 5); rejects if it cannot be had. */
  readonly fetchKeys: () => Promise<Readonly<Record<string, unknown>>>;
  /** For so long keys stay good that should have been fetched again, in milliseconds. */
  readonly staleMs: number;
  /** The time, in milliseconds since 1970. */
  readonly now: () => number;
  /** Told of the first failure of a row. */
  readonly onFailed: (cause: unknown) => void;
  /** Told of the first success after failures. */
  readonly onRecovered: () => void;
}

/** In use, keys are fetched again after this time: so a key that was taken back ends to be good. */
const refreshMs = 10 * 60_000;

/** At most one fetch in this time, however many unknown keys are named: anyone can name some. */
const pauseMs = 10_000;

/**
 * The keys of one issuer: fetched when a token needs them, again from time to time, and when a token names an unknown one
 * (rotation). While the issuer cannot be reached, known keys stay good for a bounded time.
 */
export class IssuerKeys {
  readonly #options: IssuerKeysOptions;
  #known: KeySet | undefined;
  /** When keys came the last time, the same ones or others. */
  #fetchedAtMs = 0;
  #triedAtMs = Number.NEGATIVE_INFINITY;
  #isFailing = false;
  #fetching: Promise<void> | undefined;

  constructor(options: IssuerKeysOptions) {
    this.#options = options;
  }

  /** The keys, if they may still be used. What was verified by them holds while this stays the same object. */
  get current(): KeySet | undefined {
    if (this.#known !== undefined && this.#ageMs > refreshMs) detach('request', this.refresh());
    return this.#usable;
  }

  get #usable(): KeySet | undefined {
    return this.#ageMs > refreshMs + this.#options.staleMs ? undefined : this.#known;
  }

  get #ageMs(): number {
    return this.#options.now() - this.#fetchedAtMs;
  }

  /** True if the last fetch failed: what the known keys do not say is not known. */
  get isFailing(): boolean {
    return this.#isFailing;
  }

  /** Fetches the keys, unless that was tried a moment ago; resolves with those that may be used then. */
  async refresh(): Promise<KeySet | undefined> {
    const { now } = this.#options;
    if (this.#fetching === undefined && now() - this.#triedAtMs >= pauseMs) {
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

/** Throws for what are no keys. No keys at all is a server that is not ready yet: it would refuse every token. */
function readKeys(document: Readonly<Record<string, unknown>>): JWTVerifyGetKey {
  const { keys } = document;
  if (!Array.isArray(keys) || keys.length === 0) throw new UnusableDocument('the key set contains no usable key');
  return createLocalJWKSet({ keys }); // which checks each
}
