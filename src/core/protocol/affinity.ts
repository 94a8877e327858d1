import { createHash } from 'node:crypto';
import { scalarAt } from './json.ts';
import type { Message } from './message/message.ts';
import { methodOf } from './methods/methods.ts';
import type { Principal } from './principal.ts';

/** What a template names: the user, the client's name, or a header, a claim or a member of `_meta`. */
type AffinityPart =
  | { readonly kind: 'user' | 'client' }
  | { readonly kind: 'header' | 'claim' | 'meta'; readonly name: string };

/**
 * The state that a client belongs to. `own`: the client names none, so it meets no other client. `undecided`: no request
 * has needed the state yet. `named`: all clients with the same mark share it.
 */
export type AffinityPlace =
  | { readonly kind: 'own' }
  | { readonly kind: 'undecided' }
  | { readonly kind: 'named'; readonly mark: string };

/** The mark of a client that names no state, although the template needs a name. */
export const nobody = 'nobody';

/** The most parts of a template, and the most characters of a value: a longer one counts as missing (P8). */
const maxParts = 8;
const maxValueLength = 1_024;

const reference = /\{(?:(user|client)|(header|claim|meta):([^{}]+))\}/g;
/** The form of a header name in lower case (RFC 9110, section 5.6.2). */
const headerName = /^[!#$%&'*+.^_`|~0-9a-z-]+$/;
const template = /^(?:\{[^{}]+\}[ ,;/:+-]?)+$/;

/**
 * Parses a template such as `{user} {header:X-Conversation}`. Undefined if the text has other parts. Names of headers
 * become lower case.
 */
export function parseAffinity(text: string): Affinity | undefined {
  if (!template.test(text)) return undefined;
  const parts: AffinityPart[] = [];
  for (const [, simple, kind, name = ''] of text.matchAll(reference)) {
    if (simple !== undefined) parts.push({ kind: simple as 'user' | 'client' });
    else if (kind !== 'header') parts.push({ kind: kind as 'claim' | 'meta', name });
    else if (headerName.test(name.toLowerCase())) parts.push({ kind, name: name.toLowerCase() });
    else return undefined; // no client could send it
  }
  const references = text.split('{').length - 1;
  return parts.length === references && parts.length <= maxParts ? new Affinity(parts) : undefined;
}

/** The names of clients that come back: an affinity template of the operator (docs/decisions/0105). */
export class Affinity {
  readonly #parts: readonly AffinityPart[];
  readonly #metaNames: readonly string[];

  constructor(parts: readonly AffinityPart[]) {
    this.#parts = parts;
    this.#metaNames = parts.flatMap((part) => (part.kind === 'meta' ? [part.name] : []));
  }

  /** The headers that the template names, in lower case. Each may appear in a request only once. */
  get headers(): readonly string[] {
    return this.#parts.flatMap((part) => (part.kind === 'header' ? [part.name] : []));
  }

  /** True if the template names a header or a claim: the HTTP request decides, not the message. */
  get readsSender(): boolean {
    return this.#parts.some(({ kind }) => kind === 'header' || kind === 'claim');
  }

  /** True if the template names a member of `_meta`: each request of a session decides. */
  get readsMeta(): boolean {
    return this.#metaNames.length > 0;
  }

  /** The values of the headers and claims by part; undefined if one is missing or too long. */
  readSender(
    headers: Readonly<Record<string, string | readonly string[] | undefined>>,
    claims: Readonly<Record<string, unknown>>,
  ): Readonly<Record<string, string>> | undefined {
    const values: [string, string][] = [];
    for (const part of this.#parts) {
      if (part.kind !== 'header' && part.kind !== 'claim') continue;
      const source = part.kind === 'header' ? headers : claims;
      const value = readName(Object.hasOwn(source, part.name) ? source[part.name] : undefined);
      if (value === undefined) return undefined;
      values.push([`${part.kind}:${part.name}`, value]);
    }
    return Object.fromEntries(values);
  }

  /**
   * The mark of the state that a request names in `_meta`. `nobody` if the request names none but depends on a state;
   * undefined if the state does not matter.
   */
  readMeta(request: Message): string | undefined {
    const values = this.#metaNames.map((name) => readName(scalarAt(request.text, ['params', '_meta', name])));
    if (!values.includes(undefined)) return digestOf(values);
    return methodOf(request.method).isStateless ? undefined : nobody;
  }

  /**
   * The state of a legacy session.
   * @param initialize the session's request
   * @param mark what the requests of the session have named; see `readMeta`
   */
  placeOfSession(principal: Principal | undefined, initialize: Message, mark: string | undefined): AffinityPlace {
    const named = this.readsMeta ? (mark ?? this.readMeta(initialize)) : '';
    return this.#place(principal, scalarAt(initialize.text, ['params', 'clientInfo', 'name']), named);
  }

  /** The state of a 2026-07-28 request, which names its client itself. */
  placeOfRequest(principal: Principal, request: Message): AffinityPlace {
    const named = this.readsMeta ? this.readMeta(request) : '';
    const path = ['params', '_meta', 'io.modelcontextprotocol/clientInfo', 'name'];
    return this.#place(principal, scalarAt(request.text, path), named);
  }

  #place(principal: Principal | undefined, clientName: unknown, named: string | undefined): AffinityPlace {
    const values: (string | undefined)[] = [named ?? ''];
    for (const { kind } of this.#parts) {
      if (kind === 'user') {
        const { issuer = '', subject = '', client = '' } = principal ?? {};
        values.push(JSON.stringify([issuer, subject, client]));
      } else if (kind === 'client') values.push(readName(clientName));
    }
    if (this.readsSender) values.push(principal?.affinity === nobody ? undefined : principal?.affinity);
    if (named === nobody || values.includes(undefined)) return { kind: 'own' };
    return named === undefined ? { kind: 'undecided' } : { kind: 'named', mark: digestOf(values) };
  }
}

const readName = (value: unknown): string | undefined => {
  const text = typeof value === 'number' || typeof value === 'boolean' ? String(value) : value;
  return typeof text === 'string' && text !== '' && text.length <= maxValueLength ? text : undefined;
};

const digestOf = (values: readonly unknown[]): string =>
  createHash('sha256').update(JSON.stringify(values)).digest('base64url');
