const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 });
const clock = new Intl.DateTimeFormat('en', {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
});

/** Formats a count. */
export const count = (value) => whole.format(value);

/** Formats a rate or another number that need not be exact. */
export const number = (value) => short.format(value);

/** Formats a count with its noun: `3 sessions`, `1 session`. */
export const counted = (value, one, many = `${one}s`) => `${count(value)} ${value === 1 ? one : many}`;

/** Formats a size in bytes. */
export function bytes(value) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let step = 0;
  let rest = value;
  for (; rest >= 1024 && step < units.length - 1; step += 1) rest /= 1024;
  return `${step === 0 ? whole.format(rest) : short.format(rest)} ${units[step]}`;
}

/** Formats a duration in milliseconds. */
export function duration(ms) {
  if (ms < 1_000) return `${whole.format(ms)} ms`;
  if (ms < 60_000) return `${short.format(ms / 1_000)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** Formats a time of day, from milliseconds since 1970. */
export const time = (at) => clock.format(at);
