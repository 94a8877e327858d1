import * as z from 'zod/mini';
import { isLoopback } from '../../core/auth/origin-rules.ts';
import { formatDuration, formatSize, longestMs, parseDurationMs, parseSizeBytes, suggestDuration } from '../units.ts';

/** The unit of a value in the code, which the name of the value ends with. */
export type Unit = '' | 'Ms' | 'Bytes';

/** One option: all facts about it, from which its names, its schema, its help and its type are made. */
export interface Option<T = unknown, U extends Unit = Unit> extends OptionDetails {
  /**
   * The way in which text becomes a value. On the command line, `map` is KEY=VALUE, `headers` is `Name: value` and
   * `json` is JSON text; in the file, all three are objects. On the command line, a `boolean` is a flag without a value,
   * or with `=true` or `=false`. A `duration` and a `size` are texts such as `30m` and `4MiB`.
   */
  readonly kind: 'string' | 'integer' | 'duration' | 'size' | 'list' | 'map' | 'headers' | 'boolean' | 'json';
  readonly unit: U;
  /** Checks a value in the form of the file. Its messages never repeat the value, which may be a secret (P12). */
  readonly schema: z.ZodMiniType<T>;
  readonly default: T;
  /** The text for the reference. The first sentence is also the text for `--help` and for short lists. */
  readonly description: string;
  /** The allowed values, for the reference; empty where the description names them. */
  readonly bounds: string;
  /** Renders a value as the user would write it; absent if `String` does. */
  readonly format?: (value: number) => string;
}

/** Further facts about an option, which few options have. */
export interface OptionDetails {
  /** True for an option whose default fits almost everywhere. */
  readonly isAdvanced?: boolean;
  /** A second, shorter flag. The variable has the same short name: `--port`, `GANGWAY_PORT`. */
  readonly short?: `--${string}`;
  /** Flags of other gateways and proxies with the same meaning. A fault that has one of them names this option. */
  readonly otherFlags?: readonly string[];
  /** The values, for completion in a shell. */
  readonly choices?: readonly string[];
  /** True for the path of a file or a folder. */
  readonly isFile?: boolean;
  /** A regular expression for the JSON Schema, for a text that the schema checks in code. */
  readonly pattern?: string;
  /**
   * Where the value can contain secrets, which `config print` masks: all texts, parts of a URL, members with such names,
   * or the arguments of tools.
   */
  readonly secrets?: 'texts' | 'url' | 'members' | 'arguments';
}

/** What an option is, in one line. */
export const firstSentenceOf = ({ description }: Pick<Option, 'description'>): string =>
  description.split(/(?<=\.)\s/)[0] ?? '';

/** Marks an option whose default fits almost everywhere. */
export const advanced = <T, U extends Unit>(option: Option<T, U>): Option<T, U> => ({ ...option, isAdvanced: true });

/** The default as the user would write it; undefined for none, and for one that is no text or number. */
export function writtenDefault({ default: usual, format }: Option): string | number | undefined {
  if (typeof usual === 'number') return format?.(usual) ?? usual;
  return typeof usual === 'string' ? usual : undefined;
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

/** Makes an option whose value has no unit. The schema checks only given values. */
const optionOf = <T>(
  kind: Option['kind'],
  value: T,
  schema: z.ZodMiniType<NonNullable<T>>,
  description: string,
  details: OptionDetails,
  bounds = '',
): Option<T, ''> => ({
  kind,
  unit: '',
  schema: schema as unknown as z.ZodMiniType<T>,
  default: value,
  description,
  bounds,
  ...details,
});

/** The smallest and the largest value of an option. */
type Bounds<T> = readonly [min: T, max: T];

/** An option for an integer within bounds. */
export const integer = (value: number, bounds: Bounds<number>, description: string, details: OptionDetails = {}) =>
  integerOption<number>(value, bounds, description, details);

/**
 * An option for an integer without a default. An option that is not set leaves its limit to the system, or sets none.
 */
export const optionalInteger = (bounds: Bounds<number>, description: string, details: OptionDetails = {}) =>
  integerOption<number | undefined>(undefined, bounds, description, details);

function integerOption<T extends number | undefined>(
  value: T,
  [min, max]: Bounds<number>,
  description: string,
  details: OptionDetails,
): Option<T, ''> {
  const bounds = `${min} to ${max}`;
  const usual = value === undefined ? '' : `; the default is ${value}`;
  const error = unquoted(`must be an integer from ${bounds}${usual}`);
  const schema = z.int({ error }).check(z.gte(min, { error }), z.lte(max, { error }));
  return optionOf<T>(
    'integer',
    value,
    schema as unknown as z.ZodMiniType<NonNullable<T>>,
    description,
    details,
    bounds,
  );
}

/** The text for one value of a quantity, the parser of such texts, and the words for a wrong text. */
interface Quantity {
  readonly kind: 'duration' | 'size';
  readonly unit: Unit;
  readonly parse: (text: string) => number | undefined;
  readonly format: (value: number) => string;
  readonly wrong: string;
  /** The text that the user probably meant instead of a wrong one. */
  readonly suggest?: (text: string) => string | undefined;
  readonly withoutUnit: string;
}

const milliseconds: Quantity = {
  kind: 'duration',
  unit: 'Ms',
  parse: parseDurationMs,
  format: formatDuration,
  wrong: 'must be a time such as 30s, 1h30m or 250ms (units: d, h, m, s, ms; the largest first)',
  suggest: suggestDuration,
  withoutUnit: 'needs a unit, such as 30s, 1h30m or 250ms',
};

const bytes: Quantity = {
  kind: 'size',
  unit: 'Bytes',
  parse: parseSizeBytes,
  format: formatSize,
  wrong: 'must be a size such as 64KiB, 4MiB or 1GiB (units: B, KiB, MiB, GiB, TiB)',
  withoutUnit: 'needs a unit, such as 64KiB, 4MiB or 512B',
};

/** A schema for the text of a quantity within bounds. The result is a number. */
function quantitySchema(of: Quantity, [min, max]: Bounds<number>, bounds: string, value: number | undefined) {
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

/** A text of the code as a number. The bounds and the default are written as a user writes values. */
function read({ parse }: Quantity, text: string): number {
  const value = parse(text);
  if (value === undefined) throw new Error(`${text} is no quantity`);
  return value;
}

function quantity<T extends number | undefined, U extends Unit>(
  of: Quantity,
  value: T,
  [min, max]: Bounds<number>,
  description: string,
  details: OptionDetails,
): Option<T, U> {
  const bounds =
    max === Number.MAX_SAFE_INTEGER ? `${of.format(min)} or more` : `${of.format(min)} to ${of.format(max)}`;
  const schema = quantitySchema(of, [min, max], bounds, value) as unknown as z.ZodMiniType<T>;
  const { kind, format, unit } = of;
  return { kind, unit: unit as U, schema, default: value, description, bounds, format, ...details };
}

/** The details of a time or a size, with its bounds. */
interface QuantityDetails extends OptionDetails {
  readonly min?: string;
  readonly max?: string;
}

/** An option for a time, by default from 1 ms to the longest time of a timer. The value is in milliseconds. */
export function duration(usual: string, description: string, details: QuantityDetails = {}): Option<number, 'Ms'> {
  const { min = '1ms', max, ...others } = details;
  const bounds = [read(milliseconds, min), max === undefined ? longestMs : read(milliseconds, max)] as const;
  return quantity(milliseconds, read(milliseconds, usual), bounds, description, others);
}

/** An option for a size from 1 byte on. The value is in bytes. */
export function size(usual: string, max: string | undefined, description: string, details: OptionDetails = {}) {
  const bounds = [1, max === undefined ? Number.MAX_SAFE_INTEGER : read(bytes, max)] as const;
  return quantity<number, 'Bytes'>(bytes, read(bytes, usual), bounds, description, details);
}

/** As `size`, without a default and an upper bound. */
export const optionalSize = (description: string, { min = '1B', ...details }: OptionDetails & { min?: string } = {}) =>
  quantity<number | undefined, 'Bytes'>(
    bytes,
    undefined,
    [read(bytes, min), Number.MAX_SAFE_INTEGER],
    description,
    details,
  );

const trueOrFalse = z.boolean({ error: unquoted('must be true or false') });

/** An option for a feature that is on unless the user turns it off. */
export const turnedOff = (description: string, details: OptionDetails = {}) =>
  optionOf<boolean>('boolean', true, trueOrFalse, description, details);

/** An option for a feature that is off unless the user turns it on. */
export const turnedOn = (description: string, details: OptionDetails = {}) =>
  optionOf<boolean>('boolean', false, trueOrFalse, description, details);

/** An option for one text. */
export const text = (value: string, schema: z.ZodMiniType<string>, description: string, details: OptionDetails = {}) =>
  optionOf<string>('string', value, schema, description, details);

/** An option for one text without a default. */
export const optionalText = (schema: z.ZodMiniType<string>, description: string, details: OptionDetails = {}) =>
  optionOf<string | undefined>('string', undefined, schema, description, details);

/** An option for one of a few words; the first one is the default. */
export function choice<const T extends readonly [string, ...string[]]>(
  choices: T,
  description: string,
  details: OptionDetails = {},
): Option<T[number], ''> {
  const schema = z.enum(choices, { error: `must be ${joinWords(choices)}` });
  return optionOf<T[number]>('string', choices[0], schema as z.ZodMiniType<T[number]>, description, {
    choices,
    ...details,
  });
}

/** `a, b or c` */
export const joinWords = (words: readonly string[], last: 'or' | 'and' = 'or'): string =>
  words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} ${last} ${words.at(-1)}`;

/** An option for the path of a file. */
export const fileOption = (description: string, details: OptionDetails = {}): Option<string | undefined, ''> =>
  optionalText(file, description, { isFile: true, ...details });

/** An option for several texts. */
export function list(
  item: z.ZodMiniType<string>,
  description: string,
  details: OptionDetails = {},
): Option<readonly string[], ''> {
  const schema = z.array(item, {
    error: ({ input }) =>
      typeof input === 'string'
        ? 'must be a list of strings; put the string in square brackets: ["…"]'
        : 'must be a list of strings, such as ["a", "b"]',
  });
  return optionOf<readonly string[]>('list', [], schema, description, details);
}

/** An option for an object of texts, or of what the schema makes of them. */
export const map = <T = string>(
  kind: 'map' | 'headers' | 'json',
  schema: z.ZodMiniType<Readonly<Record<string, T>>>,
  description: string,
  details: OptionDetails = {},
) => optionOf<Readonly<Record<string, T>>>(kind, {}, schema, description, details);

/** An option for an object with fixed members. */
export const object = <T>(schema: z.ZodMiniType<T | undefined>, description: string, details: OptionDetails = {}) =>
  optionOf<T | undefined>('json', undefined, schema as z.ZodMiniType<NonNullable<T>>, description, details);

/**
 * A schema for an object with these members and no others. `checkValue` reports each other member at its own place.
 * @param error the fault of a value that is not an object
 */
export const members = <T extends z.core.$ZodLooseShape>(shape: T, error: string) =>
  z.strictObject(shape, {
    error: ({ code }) =>
      code === 'unrecognized_keys' ? `is not a known key; the keys are ${joinWords(Object.keys(shape), 'and')}` : error,
  });

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

/** A URL without credentials, query or fragment, so that all parsers read it in the same way. */
export const plainUrl = (isSecure: boolean) =>
  z.string({ error: 'must be a URL' }).check(
    z.superRefine((value, context) => {
      const report = (message: string) => context.addIssue({ code: 'custom', message });
      const url = URL.canParse(value) ? new URL(value) : undefined;
      if (url === undefined || !['http:', 'https:'].includes(url.protocol)) return report('must be an https:// URL');
      if (url.username !== '' || url.password !== '') report('must not contain a user name or a password');
      if (/[?#\s"\\]/.test(value)) report('must not contain a query, a fragment, spaces or quotation marks');
      if (isSecure && url.protocol === 'http:' && !isLoopback(url.hostname)) {
        report('must use https, except on this machine: otherwise others on the network could forge tokens');
      }
    }),
  );
