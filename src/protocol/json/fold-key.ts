/** Keys that hold nothing else are folded by the engine at once. */
const ascii = /^[\x20-\x7e]*$/;

/** A lower case letter whose upper case one belongs to another letter as well: the dotless i. It has no other case of its own. */
const withoutCase = '\u0131';

/**
 * A key as readers compare it that fold case: Go's `encoding/json`, .NET's web defaults. Two keys are the same to them if this is
 * the same of both (Unicode, CaseFolding.txt, simple folding): `ſ` (U+017F) counts as `s`, and the Kelvin sign (U+212A) as `k`.
 */
export function foldKey(key: string): string {
  return ascii.test(key) ? key.toLowerCase() : Array.from(key, foldCharacter).join('');
}

/** Where another case has more than one character, simple folding leaves the character as it is. */
function foldCharacter(character: string): string {
  if (character === withoutCase) return character;
  const upper = sameLength(character.toUpperCase(), character);
  return sameLength(upper.toLowerCase(), upper);
}

const sameLength = (other: string, character: string): string => (Array.from(other).length === 1 ? other : character);
