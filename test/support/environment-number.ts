/**
 * The whole number that a variable of the environment holds, `otherwise` if it is not set. Throws if it holds anything else: of NaN runs each
 * test would pass, or not be found.
 * @param isFraction also one that is not whole, above 0
 */
export function environmentNumber(name: string, otherwise: number, { least = 1, isFraction = false } = {}): number {
  const text = process.env[name];
  if (text === undefined) return otherwise;
  const number = text.trim() === '' ? Number.NaN : Number(text);
  if (isFraction ? number > 0 && number < Number.POSITIVE_INFINITY : Number.isSafeInteger(number) && number >= least)
    return number;
  throw new Error(
    `${name} is ${isFraction ? 'a number above 0' : `a whole number from ${least} up`}, and not "${text}"`,
  );
}
