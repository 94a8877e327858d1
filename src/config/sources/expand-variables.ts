import { abbreviateName, memberPath, type ReportIssue } from '../issues.ts';
import { editorVariables } from './client-keys.ts';
import { whyUnreadable } from './named-file.ts';

/** Where references are looked up. */
export interface ReferenceSources {
  /** Undefined where only `${file:…}` is replaced: a shell has already replaced variables on the command line. */
  readonly env: Readonly<Record<string, string | undefined>> | undefined;
  /** The text of a file; throws as `readFileSync` does. */
  readonly readFile: (path: string) => string;
  readonly report: ReportIssue;
  /** Called for each replaced reference. */
  readonly onReplaced?: () => void;
}

/**
 * Replaces references in a string, in the strings of a list and in the values of an object, at any depth:
 * `${VAR}` (also `${env:VAR}`, as editors write it), `${VAR:-default}` and `${file:/run/secrets/name}`. As in a shell,
 * `:-` also replaces an empty variable. A byte order mark and the last line break of a
 * file are not part of the value. Other values stay
 * unchanged. A missing variable or file is a fault, and so is a
 * reference in another one. Replaced text is not expanded again.
 */
export function expandReferences(value: unknown, path: string, sources: ReferenceSources): unknown {
  if (typeof value === 'string') return expandText(value, path, sources);
  if (Array.isArray(value)) return value.map((item, index) => expandReferences(item, memberPath(path, index), sources));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, expandReferences(item, memberPath(path, key), sources)]),
  );
}

/** A value whose references are replaced, and the text with the references; undefined without any. */
export interface ExpandedValue {
  readonly value: unknown;
  readonly written: unknown;
}

/** As `expandReferences`, but undefined if a reference is a fault, so that the rest of the value causes no second fault. */
export function expandWhole(value: unknown, path: string, sources: ReferenceSources): ExpandedValue | undefined {
  let isWhole = true;
  let isReplaced = false;
  const onReplaced = (): void => {
    isReplaced = true;
  };
  const report: ReportIssue = (at, message) => {
    isWhole = false;
    sources.report(at, message);
  };
  const expanded = expandReferences(value, path, { ...sources, report, onReplaced });
  return isWhole ? { value: expanded, written: isReplaced ? value : undefined } : undefined;
}

/** True for a text with a reference. */
export const hasReference = (value: unknown): boolean => typeof value === 'string' && value.includes('${');

/** The references that can be in a text. */
export const referencePattern = /\$\{(?:file:([^{}]*)|(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(:(-?)([^{}]*))?)\}/g;

/** The slips that a text can have. Braces end each search, so that the time is linear. */
interface Slips {
  /** A reference whose closing brace is missing. */
  readonly unclosed: RegExp;
  /** A reference in another one. */
  readonly nested: RegExp;
}

const slips: Slips = {
  unclosed: /\$\{[A-Za-z_][^{}]*$/,
  nested: /\$\{(?:file:|(?:env:)?[A-Za-z_][A-Za-z0-9_]*:-)[^{}]*\$\{/,
};

/** The same, where only references to files are replaced. */
const slipsOfFiles: Slips = { unclosed: /\$\{file:[^{}]*$/, nested: /\$\{file:[^{}]*\$\{/ };

function expandText(text: string, path: string, { env, readFile, report, onReplaced }: ReferenceSources): string {
  const { unclosed, nested } = env === undefined ? slipsOfFiles : slips;
  if (nested.test(text)) {
    report(path, 'has a reference inside a reference, which is not supported; write the inner value itself');
    return text;
  }
  if (unclosed.test(text)) {
    report(path, 'has ${ without a closing brace; write ${VAR}, ${VAR:-default} or ${file:/path}');
    return text;
  }
  const replace = (
    whole: string,
    file: string | undefined,
    name: string | undefined,
    colon: string | undefined,
    dash: string | undefined,
    fallback: string | undefined,
  ): string => {
    if (file !== undefined) return textOfFile(file, path, readFile, report);
    if (env === undefined || name === undefined) return whole;
    if (colon !== undefined && dash === '') {
      // ${input:token} of editors and ${VAR:?…} of shells must not reach a server unexpanded.
      report(path, `\${${name}:…} is not supported; use \${VAR}, \${VAR:-default} or \${file:/path}`);
      return whole;
    }
    const found = env[name];
    const editor = editorVariables.get(name);
    if (found === undefined && fallback === undefined && editor !== undefined) {
      report(path, `\${${name}} is a variable of editors, which the gateway does not have; ${editor}`);
      return whole;
    }
    if (found === undefined && fallback === undefined) {
      report(path, `the environment variable ${name} is not set; set it, or write \${${name}:-default}`);
      return whole;
    }
    return fallback === undefined ? (found ?? '') : found || fallback;
  };
  return text.replace(referencePattern, (...match: Parameters<typeof replace>) => {
    const value = replace(...match);
    if (value !== match[0]) onReplaced?.();
    return value;
  });
}

function textOfFile(file: string, path: string, readFile: (path: string) => string, report: ReportIssue): string {
  try {
    return readFile(file).replace(/^\uFEFF|\r?\n$/g, '');
  } catch (error) {
    report(path, `refers to ${abbreviateName(file)}, which ${whyUnreadable(error, file)}`);
    return '';
  }
}
