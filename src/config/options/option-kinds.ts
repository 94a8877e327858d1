import { z } from 'zod';

/** One option: its kind, its check, and what is told of it. */
export interface Option<T = unknown> {
  /**
   * How text becomes a value; `map` is KEY=VALUE and `headers` is `Name: value` on the command line, and both an object in
   * the file. A `boolean` becomes what its default is not, on the command line by a flag without a value.
   */
  readonly kind: 'string' | 'integer' | 'list' | 'map' | 'headers' | 'boolean';
  /** Checks a value as it stands in the file. Its messages never repeat the value, which may be a secret (P12). */
  readonly schema: z.ZodType<T>;
  readonly default: T;
  /** One sentence. */
  readonly description: string;
  /** What is allowed, for the reference; empty where the description says it. */
  readonly bounds: string;
  /** True if `--help` shows it. */
  readonly inHelp: boolean;
}

interface Shown {
  readonly inHelp?: boolean;
}

/** A whole number within bounds. */
export function integer(value: number, [min, max]: readonly [number, number], description: string, shown: Shown = {}) {
  const bounds = `${min} to ${max}`;
  const error = `must be an integer from ${bounds}`;
  const schema = z.number({ error }).int({ error }).min(min, { error }).max(max, { error });
  return { kind: 'integer', schema, default: value, description, bounds, inHelp: shown.inHelp ?? false } as const;
}

/** A whole number that has no default: what it limits is not limited then, or as the system has it. */
export function optional([min, max]: readonly [number, number], description: string): Option<number | undefined> {
  const bounds = `${min} to ${max}`;
  const error = `must be an integer from ${bounds}`;
  const schema = z.number({ error }).int({ error }).min(min, { error }).max(max, { error });
  return { kind: 'integer', schema, default: undefined, description, bounds, inHelp: false };
}

/** What is there unless it is turned off. */
export function turnedOff(description: string, shown: Shown = {}): Option<boolean> {
  const schema = z.boolean({ error: 'must be true or false' });
  return { kind: 'boolean', schema, default: true, description, bounds: '', inHelp: shown.inHelp ?? false };
}

/** What is not there unless it is turned on. */
export function turnedOn(description: string, shown: Shown = {}): Option<boolean> {
  return { ...turnedOff(description, shown), default: false };
}

/** Text that a schema checks. */
export function text<T>(value: T, schema: z.ZodType<T>, description: string, shown: Shown = {}): Option<T> {
  return { kind: 'string', schema, default: value, description, bounds: '', inHelp: shown.inHelp ?? false };
}

/** Several texts. */
export function list(item: z.ZodType<string>, description: string): Option<readonly string[]> {
  const schema = z.array(item, { error: 'must be a list of strings' });
  return { kind: 'list', schema, default: [], description, bounds: '', inHelp: true };
}

/** Text of a form. */
export function matching(pattern: RegExp, error: string) {
  return z.string({ error }).regex(pattern, { error });
}

/** Text that can be handed to the operating system: a NUL would cut it or make the start throw. */
export const systemText = z.string({ error: 'must be a string' }).refine((value) => !value.includes('\0'), {
  error: 'must not contain a NUL character',
});

/** The path of a file. */
export const file = systemText.min(1, { error: 'must not be empty' });
