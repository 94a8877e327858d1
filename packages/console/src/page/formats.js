const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 });
const clock = new Intl.DateTimeFormat('en', {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
});

/** Between a number and its unit, where a line must not break. */
const gap = '\u00a0';

/** Formats a count. */
export const count = (value) => whole.format(value);

/** Formats a rate or another number that need not be exact. */
export const number = (value) => short.format(value);

/** Formats a share in percent: no more digits than a person reads. */
export const percent = (part, all) => {
  const value = (part / all) * 100;
  return `${value < 10 ? value.toLocaleString('en', { maximumSignificantDigits: 2 }) : whole.format(value)}${gap}%`;
};

/** Formats a count with its noun: `3 sessions`, `1 session`. */
export const counted = (value, one, many = `${one}s`) => `${count(value)} ${value === 1 ? one : many}`;

/** Formats a size in bytes. */
export function bytes(value) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let step = 0;
  let rest = value;
  for (; rest >= 1024 && step < units.length - 1; step += 1) rest /= 1024;
  return `${step === 0 ? whole.format(rest) : short.format(rest)}${gap}${units[step]}`;
}

/** Formats a duration in milliseconds. */
export function duration(ms) {
  if (ms < 1_000) return `${whole.format(ms)}${gap}ms`;
  if (ms < 60_000) return `${short.format(ms / 1_000)}${gap}s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes}${gap}min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48
    ? `${hours}${gap}h ${minutes % 60}${gap}min`
    : `${Math.floor(hours / 24)}${gap}d ${hours % 24}${gap}h`;
}

/** The units of a duration and of a size, from the smallest: what a unit is in the smallest, and its name. */
const durationUnits = [
  [1, 'ms'],
  [1_000, 's'],
  [60_000, 'min'],
];
const byteUnits = ['B', 'KiB', 'MiB', 'GiB', 'TiB'].map((name, step) => [1024 ** step, name]);

/** Formats the ticks of an axis in one unit: the largest in which the highest tick is at least 1. */
const axisIn = (units) => (ticks) => {
  const [size, name] = units.findLast(([size]) => Math.max(...ticks) >= size) ?? units[0];
  return ticks.map((tick) => (tick === 0 ? '0' : `${short.format(tick / size)}${gap}${name}`));
};

/** Formats the ticks of an axis of durations, which have one unit. */
export const durationAxis = axisIn(durationUnits);

/** Formats the ticks of an axis of sizes, which have one unit. */
export const bytesAxis = axisIn(byteUnits);

/** Formats an age or another duration that a person reads in whole seconds. */
export const wholeSeconds = (ms) => (ms < 1_000 ? `0${gap}s` : duration(Math.floor(ms / 1_000) * 1_000));

/** Formats a duration of less than a second that need not be whole, such as of the gateway's own work. */
export const milliseconds = (ms) => `${number(ms)}${gap}ms`;

/** Formats a time of day, from milliseconds since 1970. */
export const time = (at) => clock.format(at);
