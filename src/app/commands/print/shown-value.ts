import type { Option } from '../../../config/options/option-kinds.ts';
import { referencePattern } from '../../../config/sources/expand-variables.ts';
import { redactCredentials, mask as redacted } from '../../../util/text/redact-credentials.ts';

/** A value as `config print` shows it, and the text with references that it comes from, unless that text is shown. */
export interface ShownValue {
  readonly value: unknown;
  readonly from?: unknown;
}

const masked = '***';

/** Words before or in an argument whose value is probably a secret. */
const secretWord = /token|key|secret|passw|credential|auth/i;

/** Shows a text of a secret: its references, and a scheme such as `Bearer` before them. All other parts are masked. */
function hideText(text: string): string {
  return partsOf(text)
    .map(({ literal, reference }) =>
      reference !== undefined
        ? hideDefault(reference)
        : literal === '' || (/^(?:Bearer|Basic|Token) $/i.test(literal) && text !== literal)
          ? literal
          : masked,
    )
    .join('');
}

type Part = { readonly literal: string; readonly reference?: undefined } | { literal?: undefined; reference: string };

function partsOf(text: string): Part[] {
  const parts: Part[] = [];
  let end = 0;
  for (const match of text.matchAll(referencePattern)) {
    parts.push({ literal: text.slice(end, match.index) }, { reference: match[0] });
    end = match.index + match[0].length;
  }
  return [...parts, { literal: text.slice(end) }].filter(({ literal }) => literal !== '' || text === '');
}

/**
 * Applies a change to a text in which each reference is one character, so that no part of a reference is changed.
 * `withoutDefault` of such a character stands for the reference with a masked default.
 */
function aroundReferences(text: string, change: (text: string) => string): string {
  const references: string[] = [];
  const short = text.replace(referencePattern, (reference) => {
    references.push(reference);
    return String.fromCharCode(firstMark + references.length - 1);
  });
  return change(short).replace(anyMark, (mark) => {
    const index = mark.charCodeAt(0) - firstMark;
    const reference = references[index % maxMarks] ?? mark;
    return index < maxMarks && !hasUrlSecret(reference) ? reference : hideDefault(reference);
  });
}

/** True for a URL with a user name, a password or a query, such as the default of a reference. */
function hasUrlSecret(text: string): boolean {
  const start = text.indexOf('://') + 3;
  if (start < 3) return false;
  const [authority = ''] = text.slice(start).split('/', 1);
  return authority.includes('@') || text.includes('?', start);
}

/** Characters for private use (Unicode, chapter 23.5) stand for references. */
const firstMark = 0xe000;
const maxMarks = 0x800;
const anyMark = /[\uE000-\uEFFF]/g;

const withoutDefault = (text: string): string =>
  text.replace(anyMark, (mark) => {
    const code = mark.charCodeAt(0);
    return String.fromCharCode(code < firstMark + maxMarks ? code + maxMarks : code);
  });

/** Hides the default of `${VAR:-default}`, which may be a secret. */
function hideDefault(reference: string): string {
  const at = reference.indexOf(':-');
  return at > 0 && reference.endsWith('}') && !reference.endsWith(':-}')
    ? `${reference.slice(0, at)}:-${masked}}`
    : reference;
}

/** Hides all texts in a value. */
function hideTexts(value: unknown): unknown {
  if (typeof value === 'string') return hideText(value);
  if (Array.isArray(value)) return value.map(hideTexts);
  return isRecord(value) ? mapValues(value, hideTexts) : value === undefined ? undefined : masked;
}

/** Hides the members of an object whose names say that they are secrets, such as `clientSecret`. */
const hideSecretMembers = (value: unknown): unknown =>
  isRecord(value)
    ? mapValues(value, (item, key) => (/secret$|^privateKey$/i.test(key) ? hideTexts(item) : item))
    : typeof value === 'string'
      ? hideText(value)
      : value;

/** Hides the arguments of tools that clients do not see. */
const hideToolArguments = (value: unknown): unknown =>
  isRecord(value)
    ? mapValues(value, (tool) =>
        isRecord(tool) ? mapValues(tool, (item, key) => (key === 'arguments' ? hideTexts(item) : item)) : tool,
      )
    : hideTexts(value);

/** Hides the user name, the password and the query of a URL. */
const hideUrlSecrets = (url: unknown): unknown =>
  typeof url === 'string'
    ? aroundReferences(url, (text) =>
        text
          .replace(/\/\/([^@/]*)@/g, (whole, user) =>
            /^:?[\uE000-\uEFFF](?::[\uE000-\uEFFF])?$/.test(user) ? withoutDefault(whole) : `//${masked}@`,
          )
          .replace(/\?.*$/s, `?${masked}`),
      )
    : url;

/** The functions that hide the secrets of options. */
const hidings: Readonly<Record<NonNullable<Option['secrets']>, (value: unknown) => unknown>> = {
  texts: hideTexts,
  url: hideUrlSecrets,
  members: hideSecretMembers,
  arguments: hideToolArguments,
};

/**
 * Shows the value of an option. A secret, and a text from a file, is shown as the reference to it. Any other value is
 * shown as the gateway uses it.
 * @param written the value with its references, if it has any
 */
export function showOption({ format, secrets }: Option, value: unknown, written: unknown): ShownValue {
  if (secrets !== undefined) return { value: hidings[secrets](written ?? value) };
  if (typeof value === 'number') return withSource(format?.(value) ?? value, written);
  return typeof value !== 'boolean' && hasFileReference(written) ? { value: written } : withSource(value, written);
}

const withSource = (value: unknown, from: unknown): ShownValue => (from === undefined ? { value } : { value, from });

const hasFileReference = (written: unknown): boolean => JSON.stringify(written ?? '').includes('${file:');

/** Shows the URL of a server, without its query. */
export const showUrl = (url: string): unknown => hideUrlSecrets(url);

/** A word of a command line, in which quotes may hold blanks, or the blanks between two words. */
const wordOrBlanks = /(?:"(?:\\.|[^"\\])*"?|'[^']*'?|\\.|[^\s"'\\])+|\\|\s+/gs;

/** Shows a command that is written as one text, without the secrets that `showArguments` hides. */
export const showCommandText = (text: string): string =>
  aroundReferences(text, (short) =>
    maskArguments(short.match(wordOrBlanks) ?? [], (words, index) => words[index - 2] ?? '').join(''),
  );

/**
 * Shows arguments. Hides the value of arguments such as `--token=…`, an argument after `--token`, the values of headers,
 * the user names, passwords and queries of URLs, and what the status page redacts.
 */
export const showArguments = (args: readonly string[]): string[] =>
  maskArguments(args, (all, index) => all[index - 1] ?? '');

const maskArguments = (args: readonly string[], before: (args: readonly string[], index: number) => string): string[] =>
  args.map((argument, index) => {
    const shown = maskArgument(argument, before(args, index));
    const withoutUrlSecrets = shown.includes('://') ? String(hideUrlSecrets(shown)) : shown;
    return aroundReferences(withoutUrlSecrets, (text) => redactCredentials(text).replaceAll(redacted, masked));
  });

function maskArgument(argument: string, previous: string): string {
  const [name = '', value] = argument.split(/=(.*)/s, 2);
  if (headerOption.test(previous)) return hideHeader(argument);
  if (value !== undefined && headerOption.test(name)) return `${name}=${hideHeader(value)}`;
  if (value !== undefined && secretWord.test(name)) return `${name}=${hideArgument(value)}`;
  const follows = previous.startsWith('-') && !previous.includes('=') && secretWord.test(previous);
  return follows && !argument.startsWith('-') && argument.trim() !== '' ? hideArgument(argument) : argument;
}

/** Options of bridges and HTTP clients whose value is a header. */
const headerOption = /^["']?(?:-H|--headers?)$/;

/** Hides the value of `Name: value`, in quotes or without them. */
const hideHeader = (text: string): string =>
  text.replace(
    /^(["']?[\w-]+:(?!\/\/)\s*)(.*?)(["']?)$/s,
    (_, name: string, value: string, quote: string) => `${name}${hideArgument(value)}${quote}`,
  );

const hideArgument = (text: string): string =>
  /^(?:(?:Bearer|Basic|Token) )?[\uE000-\uEFFF]$/i.test(text) ? withoutDefault(text) : hideText(text);

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const mapValues = (
  value: Readonly<Record<string, unknown>>,
  change: (item: unknown, key: string) => unknown,
): Record<string, unknown> => Object.fromEntries(Object.entries(value).map(([key, item]) => [key, change(item, key)]));
