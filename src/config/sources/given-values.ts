// src/config/sources: reads values from the command line, the environment and the configuration file.

import type * as z from 'zod/mini';
import { nearestName } from '../../core/util/text/nearest-name.ts';
import { type ConfigurationIssue, memberPath, type ReportIssue } from '../issues.ts';
import type { Option } from '../options/option-kinds.ts';
import { rootPathOf } from '../options/option-names.ts';
import type { OptionPath } from '../options/options.ts';
import { type Branch, leafValue, type ValuesOf, valuesOf } from '../tree/branch.ts';
import { expandWhole, type ReferenceSources } from './expand-variables.ts';

/** A value from one source, not yet checked, and its location. */
export interface GivenValue {
  readonly path: ConfigurationIssue['path'];
  readonly value: unknown;
  /** The value as it is written, with its references; undefined if it has none. */
  readonly written?: unknown;
}

/** The values of one source, by the paths of the options. Those for all servers begin with `defaults`. */
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

/**
 * Reads the texts that a flag or a variable gives an option, with the files that they refer to.
 * @param place the flag or the variable
 * @param separator what stands between several values in one text of a variable
 * @returns undefined if a reference is a fault
 */
export function readTexts(
  { kind }: Pick<Option, 'kind'>,
  texts: readonly string[],
  place: string,
  references: ReferenceSources,
  separator?: string,
): GivenValue | undefined {
  const read = (each: readonly string[]): unknown =>
    fromText(kind, separator === undefined ? each : each.flatMap((text) => text.split(separator)));
  if (kind === 'json') {
    // Replaced in the values: the text of a file must not change the JSON around it.
    const whole = expandWhole(read(texts), place, references);
    return whole && { path: place, ...whole };
  }
  const whole = texts.map((text) => expandWhole(text, place, references)).filter((each) => each !== undefined);
  if (whole.length < texts.length) return undefined;
  const isWritten = whole.some(({ written }) => written !== undefined);
  const value = read(whole.map((each) => String(each.value)));
  return { path: place, value, written: isWritten ? read(texts) : undefined };
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
 * Resolves the options of a branch. Each option has the value of the first source that sets it, else the fallback, else
 * its default. Reports values that the schema refuses.
 * @param sources with the paths of these options, below the prefix
 */
export function resolveOptions<B extends Branch>(
  branch: B,
  sources: readonly Given[],
  report: ReportIssue,
  { fallbacks, prefix = '' }: { readonly fallbacks?: ValuesOf<B>; readonly prefix?: string } = {},
): ValuesOf<B> {
  return valuesOf(branch, (path, option) => {
    const usual = fallbacks === undefined ? option.default : leafValue(fallbacks, path, option);
    const given = sources.find((source) => source.has(prefix + path))?.get(prefix + path);
    // A refused option keeps its fallback. The configuration is not used then.
    return given === undefined ? usual : (checkValue(option.schema, given, report) ?? usual);
  });
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
    if (issue.code !== 'unrecognized_keys') report(at, issue.message + choiceHint(issue.message, value));
    else for (const key of issue.keys) report(memberPath(at, key), issue.message + choiceHint(issue.message, key));
  }
  return undefined;
}

/** The choice of `must be a, b or c` or of `the keys are a, b and c` that the user probably meant. */
function choiceHint(message: string, value: unknown): string {
  const choices = /(?:^must be|the keys are) ((?:[\w-]+, )*[\w-]+ (?:or|and) [\w-]+)$/
    .exec(message)?.[1]
    ?.split(/, | or | and /);
  const nearest = choices && typeof value === 'string' ? nearestName(value, choices) : undefined;
  return nearest === undefined ? '' : `; did you mean ${nearest}?`;
}

/**
 * The location of the first of some options that a source sets, for the entry of a server or for all servers.
 * @param usual the location where no source sets one; by default, the path of the first option
 */
export const placesIn =
  (sources: readonly Given[], usual?: string) =>
  (paths: readonly OptionPath[]): ConfigurationIssue['path'] => {
    const names = paths.flatMap((path) => [path, rootPathOf(path)]);
    const found = names.map((name) => sources.find((source) => source.has(name))?.get(name));
    return found.find((each) => each !== undefined)?.path ?? usual ?? paths[0] ?? '';
  };
