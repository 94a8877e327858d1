import { areHeadersTooLarge, type ForwardedHeaders, readForwardedHeaders } from './forwarded-headers.ts';

/** A part of a credential: text from the operator, a header of the request, or a verified claim of its sender. */
export type CredentialPart =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'header' | 'claim'; readonly name: string };

/** The credentials that a server gets from each of its clients. */
export interface ClientCredentials {
  /**
   * The server gets them as environment variables when its process starts, and keeps them. Or it gets them as headers,
   * which go with each message like forwarded headers.
   */
  readonly as: 'variables' | 'headers';
  /** By the name of the variable, or of the header in lower case. */
  readonly parts: ReadonlyMap<string, readonly CredentialPart[]>;
}

/** The credentials that a request carries, or the first missing one; `room` if they exceed `maxForwardedBytes`. */
export type CredentialResult =
  | { readonly ok: true; readonly values: ForwardedHeaders }
  | { readonly ok: false; readonly lacks: 'header' | 'claim'; readonly name: string }
  | { readonly ok: false; readonly lacks: 'room' };

const reference = /\{(header|claim):([^{}]+)\}/g;

/**
 * Parses `Bearer {header:X-Token}`: text with references to headers of the request or claims of its sender. Undefined
 * if the text has no reference, or braces that are not a reference. Names of headers become lower case.
 */
export function parseCredential(text: string): readonly CredentialPart[] | undefined {
  const parts: CredentialPart[] = [];
  let end = 0;
  const addText = (to: number): void => {
    if (to > end) parts.push({ kind: 'text', text: text.slice(end, to) });
  };
  for (const { 0: whole, 1: kind, 2: name = '', index } of text.matchAll(reference)) {
    addText(index);
    parts.push(kind === 'header' ? { kind, name: name.toLowerCase() } : { kind: 'claim', name });
    end = index + whole.length;
  }
  const hasReference = parts.length > 0 && end > 0;
  addText(text.length);
  const isPlain = parts.every((part) => part.kind !== 'text' || !/[{}]/.test(part.text));
  return hasReference && isPlain ? parts : undefined;
}

/** The names of the request headers that the credentials refer to. */
export function credentialHeaders({ parts }: ClientCredentials): string[] {
  const all = [...parts.values()].flat();
  return [...new Set(all.flatMap((part) => (part.kind === 'header' ? [part.name] : [])))];
}

/**
 * Builds the credentials for a server from a client's request. A part is missing if it is absent or empty, or if the
 * server cannot receive it. A claim must be a string, a number or a boolean. The result names the first missing part,
 * and never a value (P12).
 * @param headers those of the request; each of `credentialHeaders` at most once, and in visible ASCII
 * @param forwarded further headers that go to the server
 */
export function resolveCredentials(
  credentials: ClientCredentials,
  headers: Readonly<Record<string, string | readonly string[] | undefined>>,
  claims: Readonly<Record<string, unknown>>,
  forwarded: ForwardedHeaders,
): CredentialResult {
  const { as, parts } = credentials;
  const isFit = as === 'headers' ? isHeaderText : isVariableText;
  const credentialValues = readForwardedHeaders(headers, credentialHeaders(credentials));
  if (credentialValues === 'too_large') return { ok: false, lacks: 'room' };
  const values: Record<string, string> = { ...forwarded };
  for (const [name, valueParts] of parts) {
    let value = '';
    for (const part of valueParts) {
      const text =
        part.kind === 'text' ? part.text : readText(part.kind === 'header' ? credentialValues : claims, part.name);
      if (text === undefined || text === '' || !isFit(text)) {
        // Text from the operator is never missing: it was checked with the configuration.
        const missing = part as Exclude<CredentialPart, { kind: 'text' }>;
        return { ok: false, lacks: missing.kind, name: missing.name };
      }
      value += text;
    }
    values[name] = value;
  }
  return areHeadersTooLarge(values) ? { ok: false, lacks: 'room' } : { ok: true, values };
}

function readText(source: Readonly<Record<string, unknown>>, name: string): string | undefined {
  const value = Object.hasOwn(source, name) ? source[name] : undefined;
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
    ? String(value)
    : undefined;
}

const isHeaderText = (text: string): boolean => /^[\x20-\x7e]*$/.test(text);

/**
 * The system ends a variable at a NUL, and a vulnerable bash runs a value that looks like a function (CVE-2014-6271).
 */
const isVariableText = (text: string): boolean => !text.includes('\0') && !text.startsWith('()');
