import * as z from 'zod/mini';
import { formatDuration, formatSize, parseDurationMs, parseSizeBytes, second, suggestDuration } from '../units.ts';

/** One option: its kind, its schema and its documentation. */
export interface Option<T = unknown> {
  /**
   * The way in which text becomes a value. On the command line, `map` is KEY=VALUE, `headers` is `Name: value` and
   * `json` is JSON text; in the file, all three are objects. On the command line, a `boolean` is a flag without a value,
   * or with `=true` or `=false`. A `duration` and a `size` are texts such as `30m` and `4MiB`.
   */
  readonly kind: 'string' | 'integer' | 'duration' | 'size' | 'list' | 'map' | 'headers' | 'boolean' | 'json';
  /** Checks a value in the form of the file. Its messages never repeat the value, which may be a secret (P12). */
  readonly schema: z.ZodMiniType<T>;
  readonly default: T;
  /** The text for `--help` and the reference. */
  readonly description: string;
  /** The allowed values, for the reference; empty where the description names them. */
  readonly bounds: string;
  /** Renders a value as the user would write it; absent if `String` does. */
  readonly format?: (value: number) => string;
}

/** True for a value that is the same as the option's default. */
export const isDefault = (option: Option, value: unknown): boolean =>
  JSON.stringify(value) === JSON.stringify(option.default);

/** Adds to a message that the value must lose its quotes, if that is what is wrong with it. */
export const unquoted =
  (message: string) =>
  ({ input }: { readonly input?: unknown }): string =>
    typeof input === 'string' && /^(?:true|false|-?\d+)$/.test(input)
      ? message.replace(/;|$/, ', without quotes$&')
      : message;

/** An option for an integer within bounds. */
export function integer(value: number, [min, max]: readonly [number, number], description: string) {
  const bounds = `${min} to ${max}`;
  const error = unquoted(`must be an integer from ${bounds}; the default is ${value}`);
  const schema = z.int({ error }).check(z.gte(min, { error }), z.lte(max, { error }));
  return { kind: 'integer', schema, default: value, description, bounds } as const;
}

/**
 * An option for an integer without a default. An option that is not set leaves its limit to the system, or sets none.
 */
export function optionalInteger(
  [min, max]: readonly [number, number],
  description: string,
): Option<number | undefined> {
  const bounds = `${min} to ${max}`;
  const error = unquoted(`must be an integer from ${bounds}`);
  const schema = z.int({ error }).check(z.gte(min, { error }), z.lte(max, { error }));
  return { kind: 'integer', schema, default: undefined, description, bounds };
}

/** The text for one value of a quantity, the parser of such texts, and the words for a wrong text. */
interface Quantity {
  readonly kind: 'duration' | 'size';
  readonly parse: (text: string) => number | undefined;
  readonly format: (value: number) => string;
  readonly wrong: string;
  /** The text that the user probably meant instead of a wrong one. */
  readonly suggest?: (text: string) => string | undefined;
  readonly withoutUnit: string;
}

const milliseconds: Quantity = {
  kind: 'duration',
  parse: parseDurationMs,
  format: formatDuration,
  wrong: 'must be a time such as 30s, 1h30m or 250ms (units: d, h, m, s, ms; the largest first)',
  suggest: suggestDuration,
  withoutUnit: 'needs a unit, such as 30s, 1h30m or 250ms',
};

/** For values that the operating system or a protocol counts in whole seconds. */
const seconds: Quantity = {
  ...milliseconds,
  parse(text) {
    const ms = parseDurationMs(text);
    return ms === undefined || ms % second !== 0 ? undefined : ms / second;
  },
  format: (value) => formatDuration(value * second),
};

const bytes: Quantity = {
  kind: 'size',
  parse: parseSizeBytes,
  format: formatSize,
  wrong: 'must be a size such as 64KiB, 4MiB or 1GiB (units: B, KiB, MiB, GiB, TiB)',
  withoutUnit: 'needs a unit, such as 64KiB, 4MiB or 512B',
};

/** A schema for the text of a quantity within bounds. The result is a number. */
function quantitySchema(of: Quantity, [min, max]: Bounds, bounds: string, value: number | undefined) {
  const { parse, wrong, withoutUnit, suggest } = of;
  const usual = value === undefined ? '' : `; the default is ${of.format(value)}`;
  return z.pipe(
    z.transform((given: unknown, context) => {
      const refuse = (message: string): never => {
        context.issues.push({ code: 'custom', message, input: given });
        return z.NEVER;
      };
      const isPlainNumber = typeof given === 'number' || (typeof given === 'string' && /^\s*-?\d+\s*$/.test(given));
      // Zero is the same in all units.
      if (isPlainNumber && Number(given) !== 0) return refuse(withoutUnit);
      const read = given === 0 ? 0 : typeof given === 'string' ? parse(given) : undefined;
      if (read === undefined) {
        const meant = typeof given === 'string' ? suggest?.(given) : undefined;
        return refuse(meant === undefined ? wrong : `${wrong}; did you mean ${meant}?`);
      }
      return read >= min && read <= max ? read : refuse(`must be from ${bounds}${usual}`);
    }),
    z.number(),
  );
}

type Bounds = readonly [min: number, max: number];

function quantity<T extends number | undefined>(of: Quantity, value: T, [min, max]: Bounds, description: string) {
  const bounds =
    max === Number.MAX_SAFE_INTEGER ? `${of.format(min)} or more` : `${of.format(min)} to ${of.format(max)}`;
  const schema = quantitySchema(of, [min, max], bounds, value);
  return { kind: of.kind, schema, default: value, description, bounds, format: of.format } as const;
}

/** An option for a time. The value is in milliseconds. */
export const duration = (value: number, bounds: Bounds, description: string): Option<number> =>
  quantity(milliseconds, value, bounds, description);

/** An option for a time whose value is in seconds. */
export const durationS = (value: number, bounds: Bounds, description: string): Option<number> =>
  quantity(seconds, value, bounds, description);

/** An option for a size. The value is in bytes. */
export const size = (value: number, bounds: Bounds, description: string): Option<number> =>
  quantity(bytes, value, bounds, description);

/** As `size`, without a default. */
export const optionalSize = (bounds: Bounds, description: string): Option<number | undefined> =>
  quantity(bytes, undefined, bounds, description);

/** An option for a feature that is on unless the user turns it off. */
export function turnedOff(description: string): Option<boolean> {
  const schema = z.boolean({ error: unquoted('must be true or false') });
  return { kind: 'boolean', schema, default: true, description, bounds: '' };
}

/** An option for a feature that is off unless the user turns it on. */
export function turnedOn(description: string): Option<boolean> {
  return { ...turnedOff(description), default: false };
}

/** An option for one text. */
export function text<T>(value: T, schema: z.ZodMiniType<T>, description: string): Option<T> {
  return { kind: 'string', schema, default: value, description, bounds: '' };
}

/** An option for several texts. */
export function list(item: z.ZodMiniType<string>, description: string): Option<readonly string[]> {
  const schema = z.array(item, {
    error: ({ input }) =>
      typeof input === 'string'
        ? 'must be a list of strings; put the string in square brackets: ["…"]'
        : 'must be a list of strings, such as ["a", "b"]',
  });
  return { kind: 'list', schema, default: [], description, bounds: '' };
}

/** A schema for text that matches a pattern. */
export function matching(pattern: RegExp, error: string) {
  return z.string({ error }).check(z.regex(pattern, { error }));
}

/** What a text without quotes gets, such as a number in JSON. */
export const notAString = 'must be a string; put it in double quotes';

/** A schema for text that the operating system receives. A NUL character would cut the text or make the start throw. */
export const systemText = z
  .string({ error: notAString })
  .check(z.refine((value) => !value.includes('\0'), { error: 'must not contain a NUL character' }));

/** A schema for the path of a file. */
export const file = systemText.check(z.minLength(1, { error: 'must not be empty' }));
