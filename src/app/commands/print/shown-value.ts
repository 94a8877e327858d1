import type { Option } from '../../../config/options/option-kinds.ts';
import { referencePattern } from '../../../config/sources/expand-variables.ts';
import { redactCredentials, mask as redacted } from '../../../core/ops/redact-credentials.ts';
import { isObject } from '../../../core/util/is-object.ts';

/** A value as `config print` shows it, and the text with references that it comes from, unless that text is shown. */
export interface ShownValue {
  readonly value: unknown;
  readonly from?: unknown;
}

const masked = '***';

/** Words before or in an argument whose value is probably a secret. */
const secretWord = /token|key|secret|passw|credential|auth/i;

/** A text in pieces: its references, and the texts between them. */
const piecesOf = (text: string): string[] => text.split(/(\$\{[^{}]*\})/).filter((piece) => piece !== '');

const isReference = (piece: string): boolean => piece.startsWith('${');

/** Shows a text of a secret: its references, and a scheme such as `Bearer` before them. All other parts are masked. */
function hideText(text: string): string {
  const pieces = piecesOf(text);
  const isShown = (piece: string): boolean =>
    isReference(piece) || (pieces.length > 1 && /^(?:Bearer|Basic|Token) $/i.test(piece));
  return pieces.map((piece) => (isShown(piece) ? hideDefaults(piece) : masked)).join('') || masked;
}

/** Hides the default of `${VAR:-default}`, which may be a secret. */
const hideDefaults = (text: string): string =>
  text.replace(referencePattern, (reference) => reference.replace(/:-[^}]+/s, `:-${masked}`));

/** Hides all texts in a value. */
function hideTexts(value: unknown): unknown {
  if (typeof value === 'string') return hideText(value);
  if (Array.isArray(value)) return value.map(hideTexts);
  return isObject(value) ? mapValues(value, hideTexts) : value === undefined ? undefined : masked;
}

/** Hides the members of an object whose names say that they are secrets, such as `clientSecret`. */
const hideSecretMembers = (value: unknown): unknown =>
  isObject(value)
    ? mapValues(value, (item, key) => (/secret$|^privateKey$|^headers$/i.test(key) ? hideTexts(item) : item))
    : typeof value === 'string'
      ? hideText(value)
      : value;

/** Hides the arguments of tools that clients do not see. */
const hideToolArguments = (value: unknown): unknown =>
  isObject(value)
    ? mapValues(value, (tool) =>
        isObject(tool) ? mapValues(tool, (item, key) => (key === 'arguments' ? hideTexts(item) : item)) : tool,
      )
    : hideTexts(value);

/** Hides the user name, the password and the query of a URL, unless they are references. */
const hideUrlSecrets = (url: unknown): unknown =>
  typeof url === 'string'
    ? hideDefaults(url)
        .replace(/\/\/((?:\$\{[^{}]*\}|[^@/])*)@/g, (whole, user: string) =>
          /^:?\$\{[^{}]*\}(?::\$\{[^{}]*\})?$/.test(user) ? whole : `//${masked}@`,
        )
        .replace(/\?.*$/s, `?${masked}`)
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
  maskArguments(hideDefaults(text).match(wordOrBlanks) ?? [], 2).join('');

/**
 * Shows arguments. Hides the value of arguments such as `--token=…`, an argument after `--token`, the values of headers,
 * the user names, passwords and queries of URLs, the defaults of references, and what the status page redacts.
 */
export const showArguments = (args: readonly string[]): string[] => maskArguments(args.map(hideDefaults), 1);

/** @param step how far an argument is from the next one */
const maskArguments = (args: readonly string[], step: number): string[] =>
  args.map((argument, index) => {
    const shown = maskArgument(argument, args[index - step] ?? '');
    const withoutUrlSecrets = shown.includes('://') ? String(hideUrlSecrets(shown)) : shown;
    const pieces = piecesOf(withoutUrlSecrets);
    return pieces
      .map((piece) => (isReference(piece) ? piece : redactCredentials(piece)))
      .join('')
      .replaceAll(redacted, masked);
  });

function maskArgument(argument: string, previous: string): string {
  const [name = '', value] = argument.split(/=(.*)/s, 2);
  if (headerOption.test(previous)) return hideHeader(argument);
  if (value !== undefined && headerOption.test(name)) return `${name}=${hideHeader(value)}`;
  if (value !== undefined && secretWord.test(name)) return `${name}=${hideText(value)}`;
  const follows = previous.startsWith('-') && !previous.includes('=') && secretWord.test(previous);
  return follows && !argument.startsWith('-') && argument.trim() !== '' ? hideText(argument) : argument;
}

/** Options of bridges and HTTP clients whose value is a header. */
const headerOption = /^["']?(?:-H|--headers?)$/;

/** Hides the value of `Name: value`, in quotes or without them. */
const hideHeader = (text: string): string =>
  text.replace(
    /^(["']?[\w-]+:(?!\/\/)\s*)(.*?)(["']?)$/s,
    (_, name: string, value: string, quote: string) => `${name}${hideText(value)}${quote}`,
  );

const mapValues = (
  value: Readonly<Record<string, unknown>>,
  change: (item: unknown, key: string) => unknown,
): Record<string, unknown> => Object.fromEntries(Object.entries(value).map(([key, item]) => [key, change(item, key)]));
