import { areHeadersTooLarge, type ForwardedHeaders, readForwardedHeaders } from './forwarded-headers.ts';

/** A part of a credential: text of the operator's, a header of the request, or a verified claim of its sender. */
export type CredentialPart =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'header' | 'claim'; readonly name: string };

/** What a server gets of each of its clients. */
export interface ClientCredentials {
  /**
   * As environment variables of its process, which it is started with and keeps; or as headers, which go with each message
   * as those that are forwarded.
   */
  readonly as: 'variables' | 'headers';
  /** By the name of the variable, or of the header in small letters. */
  readonly parts: ReadonlyMap<string, readonly CredentialPart[]>;
}

/** What a request brings, or what it lacks; `room` if it brings more than `maxForwardedBytes`. */
export type CredentialResult =
  | { readonly ok: true; readonly values: ForwardedHeaders }
  | { readonly ok: false; readonly lacks: 'header' | 'claim'; readonly name: string }
  | { readonly ok: false; readonly lacks: 'room' };

const reference = /\{(header|claim):([^{}]+)\}/g;

/**
 * Reads `Bearer {header:X-Token}`: text, with what stands in a header of the request or in a claim of its sender. Undefined
 * if the text names neither, or has braces that stand for nothing. Names of headers become small letters.
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

/** The headers of a client's request that are looked at. */
export function credentialHeaders({ parts }: ClientCredentials): string[] {
  const all = [...parts.values()].flat();
  return [...new Set(all.flatMap((part) => (part.kind === 'header' ? [part.name] : [])))];
}

/**
 * What a request brings for its server. It lacks what is not there, is empty, cannot be handed to the server, or, of claims,
 * is no text, number or truth value. The first that it lacks is named, and never a value (P12).
 * @param headers of the request; each of `credentialHeaders` at most once, and of visible ASCII
 * @param forwarded what goes to the server beside that
 */
export function resolveCredentials(
  credentials: ClientCredentials,
  headers: Readonly<Record<string, string | readonly string[] | undefined>>,
  claims: Readonly<Record<string, unknown>>,
  forwarded: ForwardedHeaders,
): CredentialResult {
  const { as, parts } = credentials;
  const isFit = as === 'headers' ? isHeaderText : isVariableText;
  const offered = readForwardedHeaders(headers, credentialHeaders(credentials));
  if (offered === 'too_large') return { ok: false, lacks: 'room' };
  const values: Record<string, string> = { ...forwarded };
  for (const [name, of] of parts) {
    let value = '';
    for (const part of of) {
      const text = part.kind === 'text' ? part.text : read(part.kind === 'header' ? offered : claims, part.name);
      if (text === undefined || text === '' || !isFit(text)) {
        // Only text of the operator's is neither, and that was checked with the configuration.
        const lacking = part as Exclude<CredentialPart, { kind: 'text' }>;
        return { ok: false, lacks: lacking.kind, name: lacking.name };
      }
      value += text;
    }
    values[name] = value;
  }
  return areHeadersTooLarge(values) ? { ok: false, lacks: 'room' } : { ok: true, values };
}

function read(from: Readonly<Record<string, unknown>>, name: string): string | undefined {
  const value = Object.hasOwn(from, name) ? from[name] : undefined;
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
    ? String(value)
    : undefined;
}

const isHeaderText = (text: string): boolean => /^[\x20-\x7e]*$/.test(text);

/** The system ends a variable at a NUL; a vulnerable bash runs what looks like a function (CVE-2014-6271). */
const isVariableText = (text: string): boolean => !text.includes('\0') && !text.startsWith('()');
