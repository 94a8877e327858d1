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
  return ascii.test(key) ? key.toLowerCase() : Array.from(key, foldCharacter).join('');
}

/** Simple folding leaves a character as it is if its other case has more than one character. */
function foldCharacter(character: string): string {
  if (character === withoutCase) return character;
  const upper = sameLength(character.toUpperCase(), character);
  return sameLength(upper.toLowerCase(), upper);
}

const sameLength = (other: string, character: string): string => (Array.from(other).length === 1 ? other : character);
