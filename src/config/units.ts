export const mebibyte = 1024 * 1024;
/** In milliseconds, like `minute`. */
export const second = 1000;
export const minute = 60 * second;

/** The longest time (ms), in whole days: setTimeout turns a time of 2 ** 31 ms into 1 ms. */
export const longestMs = 24 * 24 * 60 * minute;
/** The largest single message: V8 holds no string of 512 MiB or more. */
export const largestMessageBytes = 256 * mebibyte;

export const timeUnits = [
  ['d', 24 * 60 * minute],
  ['h', 60 * minute],
  ['m', minute],
  ['s', second],
  ['ms', 1],
] as const;

const sizeUnits = [
  ['TiB', mebibyte * mebibyte],
  ['GiB', 1024 * mebibyte],
  ['MiB', mebibyte],
  ['KiB', 1024],
  ['B', 1],
] as const;

/** Longer texts are neither a time nor a size. */
const maxTextLength = 40;

/** Reads a time such as `30m`, `1h30m`, `1.5s` or `250ms`, in milliseconds. Undefined for any other text. */
export function parseDurationMs(text: string): number | undefined {
  const compact = text.trim();
  if (compact === '0') return 0;
  if (compact.length > maxTextLength || !/^(?:\d+(?:\.\d+)?(?:ms|[smhd]))+$/.test(compact)) return undefined;
  let totalMs = 0;
  let smallestMs = Number.POSITIVE_INFINITY;
  for (const [, amount, unit] of compact.matchAll(/(?<![\d.])(\d+(?:\.\d+)?)(ms|[smhd])/g)) {
    const unitMs = timeUnits.find(([name]) => name === unit)?.[1] ?? 1;
    // From the largest unit to the smallest, each at most once: 30m1h is more likely a mistake.
    if (unitMs >= smallestMs) return undefined;
    smallestMs = unitMs;
    totalMs += Number(amount) * unitMs;
  }
  const roundedMs = Math.round(totalMs);
  return Math.abs(totalMs - roundedMs) < 1e-6 ? roundedMs : undefined;
}

/** The correct form of a time with words for units or in another order: `30 min`, `30m1h`. Undefined for other texts. */
export function suggestDuration(text: string): string | undefined {
  if (text.length > maxTextLength || !/^(?:\d+\s*[a-z]+\s*)+$/i.test(text.trim())) return undefined;
  let totalMs = 0;
  for (const [, amount, word = ''] of text.toLowerCase().matchAll(/(?<!\d)(\d{1,15})\s{0,9}([a-z]+)/g)) {
    const unit = /^(?:milli|ms)/.test(word) ? 'ms' : word.slice(0, 1);
    const unitMs = timeUnits.find(([name]) => name === unit)?.[1];
    if (unitMs === undefined) return undefined;
    totalMs += Number(amount) * unitMs;
  }
  return totalMs > 0 && totalMs <= longestMs ? formatDuration(totalMs) : undefined;
}

/**
 * Reads a size such as `4MiB`, `64k` or `512B`, in bytes. `k`, `M`, `G` and `T` are powers of 1024, with or without
 * `B` or `iB`, in capital or small letters. Undefined for any other text.
 */
export function parseSizeBytes(text: string): number | undefined {
  const compact = text.trim();
  if (compact === '0') return 0;
  const match = /^(\d+(?:\.\d+)?) ?(?:([kmgt])(?:i?b)?|b)$/i.exec(compact);
  if (compact.length > maxTextLength || match === null) return undefined;
  const [, amount, letter = 'B'] = match;
  const unitBytes = sizeUnits.find(([name]) => name.startsWith(letter.toUpperCase()))?.[1] ?? 1;
  const bytes = Number(amount) * unitBytes;
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

/** The shortest text for a time: 5_400_000 → `1h30m`. */
export function formatDuration(ms: number): string {
  let restMs = ms;
  let text = '';
  for (const [name, unitMs] of timeUnits) {
    const amount = Math.floor(restMs / unitMs);
    if (amount > 0) text += `${amount}${name}`;
    restMs -= amount * unitMs;
  }
  return text === '' ? '0' : text;
}

/** The shortest exact text for a size: 4_194_304 → `4MiB`. */
export function formatSize(bytes: number): string {
  if (bytes === 0) return '0';
  const [name, unitBytes] = sizeUnits.find(([, unit]) => bytes % unit === 0) ?? ['B', 1];
  return `${bytes / unitBytes}${name}`;
}
