import type { Option } from '../options/option-kinds.ts';
import { parseDurationMs, parseSizeBytes, sizeUnits, timeUnits } from '../units.ts';

/**
 * A regular expression for the texts of a time or size up to the largest allowed value, for the JSON Schema. It accepts
 * each text that the gateway accepts. It cannot refuse all others: only each number by itself is compared.
 */
export function patternOf({ kind, bounds, schema }: Pick<Option, 'kind' | 'bounds' | 'schema'>): string {
  const largest = / to (\S+)$/.exec(bounds)?.[1] ?? '';
  const zero = allowsZero(schema) ? '0|' : '';
  if (kind === 'duration') {
    const largestMs = parseDurationMs(largest) ?? Number.MAX_SAFE_INTEGER;
    const parts = timeUnits.map(([unit, unitMs]) => `(${numberUpTo(Math.floor(largestMs / unitMs))}${unit})?`);
    return `^(${zero}(?=.)${parts.join('')})$`;
  }
  const largestBytes = parseSizeBytes(largest) ?? Number.MAX_SAFE_INTEGER;
  const parts = sizeUnits.map(([unit, unitBytes]) => {
    const number = numberUpTo(Math.floor(largestBytes / unitBytes));
    const letter = unit.slice(0, 1);
    return `${number} ?${unit === 'B' ? '[bB]' : `[${letter.toLowerCase()}${letter}](i?[bB])?`}`;
  });
  return `^(${zero}${parts.join('|')})$`;
}

/** True for an option with the value 0, which needs no unit. */
export const allowsZero = (schema: Option['schema']): boolean => schema.safeParse(0).success;

/** A number whose integer part is at most `limit`. A smaller unit can also be a fraction of a larger one: `0.5d`. */
function numberUpTo(limit: number): string {
  const digits = String(limit);
  const shorter = digits.length > 1 ? [`\\d{1,${digits.length - 1}}`] : [];
  const sameLength = [...digits].flatMap((digit, index) => {
    const rest = digits.length - index - 1;
    const below = Number(digit) - 1;
    return below < 0 ? [] : [`${digits.slice(0, index)}[0-${below}]${rest === 0 ? '' : `\\d{${rest}}`}`];
  });
  return `0*(${[...shorter, ...sameLength, digits].join('|')})(\\.\\d+)?`;
}
