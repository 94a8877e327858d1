/** Frequent texts, found by their bytes: that costs less than making a new string each time. */
export interface InternedTexts {
  /** The text between these positions, if it is one of the interned texts. */
  find(bytes: Buffer, start: number, end: number): string | undefined;
}

interface ShortText {
  readonly text: string;
  readonly bytes: Buffer;
}

/**
 * Interns texts.
 * @param texts in ASCII; texts of the same length are compared one after the other
 */
export function internTexts(texts: readonly string[]): InternedTexts {
  const byLength: ShortText[][] = [];
  for (const text of texts) {
    while (byLength.length <= text.length) byLength.push([]);
    byLength[text.length]?.push({ text, bytes: Buffer.from(text) });
  }
  return {
    find(bytes, start, end) {
      const same = byLength[end - start];
      if (same === undefined) return undefined;
      for (let i = 0; i < same.length; i++) {
        const known = same[i] as ShortText;
        if (isAt(bytes, start, known.bytes)) return known.text;
      }
      return undefined;
    },
  };
}

function isAt(bytes: Buffer, start: number, known: Buffer): boolean {
  for (let i = 0; i < known.length; i++) if (bytes[start + i] !== known[i]) return false;
  return true;
}
