/** The engine folds keys that hold only these characters at once. */
const ascii = /^[\x20-\x7e]*$/;

/** True for a text that the engine folds at once. */
export const isAscii = (text: string): boolean => ascii.test(text);

/** The dotless i. Its upper case belongs to another letter as well, so simple folding leaves it as it is. */
const withoutCase = '\u0131';

/**
 * Folds a key as readers do that ignore case: Go's `encoding/json`, .NET's web defaults. Two keys are equal to such
 * readers if this function returns the same for both (Unicode, CaseFolding.txt, simple folding). For example, `ſ`
 * (U+017F) counts as `s`, and the Kelvin sign (U+212A) as `k`.
 */
export function foldKey(key: string): string {
  if (isAscii(key)) return key.toLowerCase();
  let folded = '';
  // In portions: a text that grows by single characters takes 32 bytes of memory for each, and time.
  for (let from = 0; from < key.length; from += units.length) {
    const count = Math.min(units.length, key.length - from);
    for (let index = 0; index < count; index += 1) {
      const unit = key.charCodeAt(from + index);
      if (isSurrogate(unit)) return foldCodePoints(key);
      units[index] = foldCode(unit);
    }
    folded += String.fromCharCode.apply(null, units.subarray(0, count) as unknown as number[]);
  }
  return folded;
}

/** One portion of a folded key. */
const units = new Uint16Array(1_024);

const isSurrogate = (unit: number): boolean => (unit & 0xf800) === 0xd800;

/** As `foldKey`, for keys with characters of more than one unit. These are rare, and slow. */
const foldCodePoints = (key: string): string =>
  Array.from(key, (character) => {
    const code = character.codePointAt(0) as number;
    return code < codesWithCase ? String.fromCodePoint(foldCode(code)) : character;
  }).join('');

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
