/** A longer text is not searched for escapes (P8): 1 MiB takes 4 milliseconds. */
const maxSearchedBytes = 1024 * 1024;

/** The escapes of a longer text are not resolved (P8): 64 KiB take 10 milliseconds. */
const maxResolvedBytes = 64 * 1024;

const escapedAscii = /\\u00([2-7][0-9a-f])/gi;

/**
 * A key that few texts have. A search for its bytes costs much less than a walk over the members, and most texts need no
 * walk then (P8).
 */
export class SoughtKey {
  readonly #quoted: string;
  /** An escape of a character of the key. Writers of JSON escape no letters; some escape `<`, `>` and `&`. */
  readonly #escapedCharacter: RegExp;

  /** @param key printable ASCII, without quotes and backslashes */
  constructor(key: string) {
    this.#quoted = `"${key}"`;
    const codes = new Set(Array.from(key, (character) => character.charCodeAt(0).toString(16)));
    this.#escapedCharacter = new RegExp(`\\\\u00(?:${[...codes].join('|')})`, 'i');
  }

  /**
   * False if no key of a JSON text is this one, with or without escapes: `\u0061` is the same key as `a`. A large text
   * with escapes counts as if it had the key.
   */
  mayBeIn(text: Buffer): boolean {
    if (text.includes(this.#quoted)) return true;
    if (!text.includes('\\u00')) return false;
    if (text.length > maxSearchedBytes) return true;
    if (!this.#escapedCharacter.test(text.toString('latin1'))) return false;
    if (text.length > maxResolvedBytes) return true;
    const plain = text
      .toString()
      .replace(escapedAscii, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
    return plain.includes(this.#quoted);
  }
}
