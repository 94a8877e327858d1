// src/config/sources: reads values from the command line, the environment and the configuration file.

import type * as z from 'zod/mini';
import { nearestName } from '../../util/text/nearest-name.ts';
import { type ConfigurationIssue, memberPath, type ReportIssue } from '../issues.ts';
import type { Option } from '../options/option-kinds.ts';
import type { OptionTable, OptionValues } from '../options/options.ts';

/** A value from one source, not yet checked, and its location. */
export interface GivenValue {
  readonly path: ConfigurationIssue['path'];
  readonly value: unknown;
  /** The value as it is written, with its references; undefined if it has none. */
  readonly written?: unknown;
}

/** The values of one source, by option key. */
export type Given = ReadonlyMap<string, GivenValue>;

/**
 * Converts text of the command line or the environment into the value that the file would have. Text that does not fit
 * the kind stays unchanged, so that the schema refuses it with its message.
 */
export function fromText(kind: Option['kind'], texts: readonly string[]): unknown {
  const [first = ''] = texts;
  switch (kind) {
    case 'string':
    case 'duration':
    case 'size':
      return first;
    case 'integer':
      return /^-?\d+$/.test(first) ? Number(first) : first;
    case 'json':
      return parseJson(first);
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
      // A repeated header must remain a fault, which an object could not represent.
      const hasDuplicate = new Set(pairs.map(([, name = '']) => name.toLowerCase())).size < pairs.length;
      return hasDuplicate ? texts : Object.fromEntries(pairs.map(([, name, value]) => [name, value]));
    }
  }
}

/** Text that is not JSON stays unchanged. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/**
 * Resolves the options of a table. Each option has the value of the first source that sets it, else the fallback.
 * Reports values that the schema refuses.
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
    // A refused option keeps its fallback. The configuration is not used then.
    values[key] = checkValue(schema, given, report) ?? values[key];
  }
  // The loop checked each value with the schema of its own key, which the type system cannot see.
  return values as OptionValues<T>;
}

/** Checks a value with its schema. Reports each fault and returns undefined if there is one. */
export function checkValue<T>(
  schema: z.ZodMiniType<T>,
  { path, value }: GivenValue,
  report: ReportIssue,
): T | undefined {
  const checked = schema.safeParse(value);
  if (checked.success) return checked.data;
  for (const issue of checked.error.issues) {
    const at = issue.path.reduce<string>(memberPath, path);
    report(at, issue.message + choiceHint(issue.message, value));
  }
  return undefined;
}

/** The choice of `must be a, b or c` that the user probably meant. */
function choiceHint(message: string, value: unknown): string {
  const choices = /^must be ((?:[\w-]+, )*[\w-]+ or [\w-]+)$/.exec(message)?.[1]?.split(/, | or /);
  const nearest = choices && typeof value === 'string' ? nearestName(value, choices) : undefined;
  return nearest === undefined ? '' : `; did you mean ${nearest}?`;
}

/** The value of the first source that sets an option. */
export function firstGiven(sources: readonly Given[], key: string): GivenValue | undefined {
  return sources.find((source) => source.has(key))?.get(key);
}

/** The location of the first of these options that is set, else the first key. */
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
