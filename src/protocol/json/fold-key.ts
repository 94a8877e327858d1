/** The engine folds keys that hold only these characters at once. */
const ascii = /^[\x20-\x7e]*$/;

/** The dotless i. Its upper case belongs to another letter as well, so simple folding leaves it as it is. */
const withoutCase = '\u0131';

/**
 * Folds a key as readers do that ignore case: Go's `encoding/json`, .NET's web defaults. Two keys are equal to such
 * readers if this function returns the same for both (Unicode, CaseFolding.txt, simple folding). For example, `ſ`
 * (U+017F) counts as `s`, and the Kelvin sign (U+212A) as `k`.
 */
export function foldKey(key: string): string {
  if (ascii.test(key)) return key.toLowerCase();
  let folded = '';
  // In portions: a text that grows by single characters takes 32 bytes of memory for each.
  let codes: number[] = [];
  for (let at = 0; at < key.length; ) {
    const code = key.codePointAt(at) as number;
    at += code > maxCodeUnit ? 2 : 1;
    codes.push(code < codesWithCase ? foldCode(code) : code);
    if (codes.length < codesOfPortion && at < key.length) continue;
    folded += String.fromCodePoint(...codes);
    codes = [];
  }
  return folded;
}

const codesOfPortion = 1_024;

const maxCodeUnit = 0xffff;

/** No character from here on has another case. */
const codesWithCase = 0x20000;

/** What each character folds to, plus one; 0 for one that has not been met. Made when it is first needed. */
let foldedCodes: Uint32Array | undefined;

/** Finding the other case of a character takes 200 nanoseconds, and a key can have thousands of them (P8). */
function foldCode(code: number): number {
  foldedCodes ??= new Uint32Array(codesWithCase);
  const known = foldedCodes[code] as number;
  if (known > 0) return known - 1;
  const folded = foldCharacter(String.fromCodePoint(code)).codePointAt(0) as number;
  foldedCodes[code] = folded + 1;
  return folded;
}

/** Simple folding leaves a character as it is if its other case has more than one character. */
function foldCharacter(character: string): string {
  if (character === withoutCase) return character;
  const upper = sameLength(character.toUpperCase(), character);
  return sameLength(upper.toLowerCase(), upper);
}

const sameLength = (other: string, character: string): string => (Array.from(other).length === 1 ? other : character);
