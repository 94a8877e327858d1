import * as z from 'zod/mini';

/** One option: its kind, its schema and its documentation. */
export interface Option<T = unknown> {
  /**
   * The way in which text becomes a value. On the command line, `map` is KEY=VALUE and `headers` is `Name: value`; in
   * the file, both are objects. On the command line, a `boolean` is a flag without a value, which inverts the default.
   */
  readonly kind: 'string' | 'integer' | 'list' | 'map' | 'headers' | 'boolean';
  /** Checks a value in the form of the file. Its messages never repeat the value, which may be a secret (P12). */
  readonly schema: z.ZodMiniType<T>;
  readonly default: T;
  /** The text for `--help` and the reference. */
  readonly description: string;
  /** The allowed values, for the reference; empty where the description names them. */
  readonly bounds: string;
  /** True if `--help` shows it. */
  readonly inHelp: boolean;
}

interface HelpSetting {
  readonly inHelp?: boolean;
}

/** An option for an integer within bounds. */
export function integer(
  value: number,
  [min, max]: readonly [number, number],
  description: string,
  { inHelp = false }: HelpSetting = {},
) {
  const bounds = `${min} to ${max}`;
  const error = `must be an integer from ${bounds}`;
  const schema = z.int({ error }).check(z.gte(min, { error }), z.lte(max, { error }));
  return { kind: 'integer', schema, default: value, description, bounds, inHelp } as const;
}

/**
 * An option for an integer without a default. An option that is not set leaves its limit to the system, or sets none.
 */
export function optionalInteger(
  [min, max]: readonly [number, number],
  description: string,
): Option<number | undefined> {
  const bounds = `${min} to ${max}`;
  const error = `must be an integer from ${bounds}`;
  const schema = z.int({ error }).check(z.gte(min, { error }), z.lte(max, { error }));
  return { kind: 'integer', schema, default: undefined, description, bounds, inHelp: false };
}

/** An option for a feature that is on unless the user turns it off. */
export function turnedOff(description: string, { inHelp = false }: HelpSetting = {}): Option<boolean> {
  const schema = z.boolean({ error: 'must be true or false' });
  return { kind: 'boolean', schema, default: true, description, bounds: '', inHelp };
}

/** An option for a feature that is off unless the user turns it on. */
export function turnedOn(description: string, setting: HelpSetting = {}): Option<boolean> {
  return { ...turnedOff(description, setting), default: false };
}

/** An option for one text. */
export function text<T>(
  value: T,
  schema: z.ZodMiniType<T>,
  description: string,
  { inHelp = false }: HelpSetting = {},
): Option<T> {
  return { kind: 'string', schema, default: value, description, bounds: '', inHelp };
}

/** An option for several texts, shown in `--help`. */
export function list(item: z.ZodMiniType<string>, description: string): Option<readonly string[]> {
  const schema = z.array(item, { error: 'must be a list of strings' });
  return { kind: 'list', schema, default: [], description, bounds: '', inHelp: true };
}

/** A schema for text that matches a pattern. */
export function matching(pattern: RegExp, error: string) {
  return z.string({ error }).check(z.regex(pattern, { error }));
}

/** A schema for text that the operating system receives. A NUL character would cut the text or make the start throw. */
export const systemText = z
  .string({ error: 'must be a string' })
  .check(z.refine((value) => !value.includes('\0'), { error: 'must not contain a NUL character' }));

/** A schema for the path of a file. */
export const file = systemText.check(z.minLength(1, { error: 'must not be empty' }));
