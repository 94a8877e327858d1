/**
 * Reads a whole number from a variable of the environment; `otherwise` if it is not set. Throws for any other value:
 * with NaN, a test would always pass or would not be found.
 * @param isFraction true to accept any number above 0
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
