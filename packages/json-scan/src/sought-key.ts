/** A longer text is not searched for escapes (P8): 1 MiB takes 4 milliseconds. */
const maxSearchedBytes = 1024 * 1024;

/** The escapes of a longer text are not resolved (P8): 64 KiB take 10 milliseconds. */
const maxResolvedBytes = 64 * 1024;

/** An escape of a character that a key has. Writers of JSON escape none of them; some escape `<`, `>` and `&`. */
const escapedWord = /\\u00(?:2d|3\d|4[1-9a-f]|5[0-9af]|6[1-9a-f]|7[0-9a])/i;

const escapedAscii = /\\u00([2-7][0-9a-f])/gi;

/**
 * A key that few texts have. A search for its bytes costs much less than a walk over the members, and most texts need no
 * walk then (P8).
 */
export class SoughtKey {
  readonly #quoted: string;

  /** @param key letters, digits, `-` and `_` */
  constructor(key: string) {
    this.#quoted = `"${key}"`;
  }

  /**
   * False if no key of a JSON text is this one, with or without escapes: `\u0061` is the same key as `a`. A large text
   * with escapes counts as if it had the key.
   */
  mayBeIn(text: Buffer): boolean {
    if (text.includes(this.#quoted)) return true;
    if (!text.includes('\\u00')) return false;
    if (text.length > maxSearchedBytes) return true;
    if (!escapedWord.test(text.toString('latin1'))) return false;
    if (text.length > maxResolvedBytes) return true;
    const plain = text
      .toString()
      .replace(escapedAscii, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
    return plain.includes(this.#quoted);
  }
}
