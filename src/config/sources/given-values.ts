import type { z } from 'zod';
import { type ConfigurationIssue, memberPath, type ReportIssue } from '../issues.ts';
import type { Option } from '../options/option-kinds.ts';
import type { OptionTable, OptionValues } from '../options/options.ts';

/** A value as one source gives it: where it stands, and itself, not yet checked. */
export interface GivenValue {
  readonly path: ConfigurationIssue['path'];
  readonly value: unknown;
}

/** What one source gives, by the options' keys. */
export type Given = ReadonlyMap<string, GivenValue>;

/**
 * Text of the command line or the environment as the value that the file would have. Text that does not fit the kind
 * stays as it is, for the schema to refuse with its message.
 */
export function fromText(kind: Option['kind'], texts: readonly string[]): unknown {
  const [first = ''] = texts;
  switch (kind) {
    case 'string':
      return first;
    case 'integer':
      return /^-?\d+$/.test(first) ? Number(first) : first;
    case 'boolean':
      return first === 'true' ? true : first === 'false' ? false : first;
    case 'list':
      return texts.flatMap((text) => text.split(',').map((item) => item.trim()));
    case 'map': {
      const pairs = texts.map((text) => /^([^=]+)=(.*)$/s.exec(text));
      return pairs.every((pair) => pair !== null)
        ? Object.fromEntries(pairs.map(([, key, value]) => [key, value]))
        : texts;
    }
    case 'headers': {
      const pairs = texts.map((text) => /^([^:]+):[ \t]*(.*)$/s.exec(text));
      if (!pairs.every((pair) => pair !== null)) return texts;
      // One that is given twice stays a fault, which an object could not show.
      const isTwice = new Set(pairs.map(([, name = '']) => name.toLowerCase())).size < pairs.length;
      return isTwice ? texts : Object.fromEntries(pairs.map(([, name, value]) => [name, value]));
    }
  }
}

/**
 * The values of a table's options: of each the first source that gives it, else the fallback. Reports what the schema
 * refuses.
 */
export function resolveOptions<T extends OptionTable>(
  table: T,
  sources: readonly Given[],
  fallbacks: OptionValues<T>,
  report: ReportIssue,
): OptionValues<T> {
  const values: Record<string, unknown> = { ...fallbacks };
  for (const [key, { schema }] of Object.entries(table)) {
    const given = firstGiven(sources, key);
    if (given === undefined) continue;
    // What is refused keeps its fallback; the configuration is not used then.
    values[key] = checkValue(schema, given, report) ?? values[key];
  }
  // The loop has put each key's value through that key's own schema, which the type system cannot see.
  return values as OptionValues<T>;
}

/** A value that its schema takes, or undefined and a report of each thing that is wrong with it. */
export function checkValue<T>(schema: z.ZodType<T>, { path, value }: GivenValue, report: ReportIssue): T | undefined {
  const checked = schema.safeParse(value);
  if (checked.success) return checked.data;
  for (const issue of checked.error.issues) report(issue.path.reduce<string>(memberPath, path), issue.message);
  return undefined;
}

/** The value of the first source that gives an option. */
export function firstGiven(sources: readonly Given[], key: string): GivenValue | undefined {
  return sources.find((source) => source.has(key))?.get(key);
}

/** Where the first of these options stands that is given; the first name where none is. */
export const optionLocation = (
  sources: readonly Given[],
  key: string,
  ...others: readonly string[]
): ConfigurationIssue['path'] =>
  [key, ...others].map((each) => firstGiven(sources, each)?.path).find((path) => path !== undefined) ?? key;

/** The defaults of a table's options. */
export function defaultsOf<T extends OptionTable>(table: T): OptionValues<T> {
  // As in resolveOptions: each key's default has that key's type.
  return Object.fromEntries(Object.entries(table).map(([key, option]) => [key, option.default])) as OptionValues<T>;
}
