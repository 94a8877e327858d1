import type { IncomingHttpHeaders } from 'node:http';

/** A cookie that a server has set. */
interface Cookie {
  readonly value: string;
  readonly path: string;
  readonly isSecure: boolean;
  /** In milliseconds since 1970; undefined for as long as the jar lives. */
  readonly expiresAt: number | undefined;
}

/** The cookies of a jar, for the next owner of its session. They can open the session: a secret (P12). */
export type CookieState = readonly (readonly [name: string, cookie: Cookie])[];

/** Balancers set one or two cookies. Every request carries all of them, and the session record too (P8). */
const maxCookies = 20;
/** The limit of browsers for one cookie (RFC 6265, section 6.1). A larger one is ignored. */
const maxCookieLength = 4 * 1024;
/** All cookies together. Node.js servers refuse request heads of more than 16 KiB. */
const maxJarLength = 8 * 1024;

const pairForm = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+)=([\x21-\x3a\x3c-\x7e]*)$/;

/**
 * The cookies that a server has set for one session (RFC 6265). They go back to the same origin, since load balancers
 * recognise by them which server has the session. `Domain` is ignored: a backend sends nothing to another host.
 */
export class CookieJar {
  readonly #cookies = new Map<string, Cookie>();
  #onChange: () => unknown;

  /** @param onChange called after each change */
  constructor(onChange: () => unknown = () => undefined) {
    this.#onChange = onChange;
  }

  get state(): CookieState | undefined {
    return this.#cookies.size === 0 ? undefined : [...this.#cookies];
  }

  /** Continues with the cookies of another jar. */
  restore(state: CookieState = []): void {
    for (const [name, cookie] of state) this.#cookies.set(name, cookie);
  }

  /** Takes the cookies that a connection got before it had a session, and those that it gets from now on. */
  follow(other: CookieJar): void {
    other.#onChange = () => {
      this.#cookies.clear();
      this.restore(other.state);
      this.#onChange();
    };
    if (other.state !== undefined) other.#onChange();
  }

  /** Takes the cookies of a response to a request for this URL. */
  take({ 'set-cookie': set }: IncomingHttpHeaders, url: URL): void {
    if (set === undefined) return;
    const before = JSON.stringify(this.state);
    for (const text of typeof set === 'string' ? [set] : set) this.#takeOne(text, url);
    if (JSON.stringify(this.state) !== before) this.#onChange();
  }

  #takeOne(text: string, url: URL): void {
    if (text.length > maxCookieLength) return;
    const [pair = '', ...attributes] = text.split(';').map((part) => part.trim());
    const [, name, value] = pairForm.exec(pair) ?? [];
    if (name === undefined || value === undefined) return;
    const cookie = readCookie(value, attributes, url);
    this.#cookies.delete(name);
    if (isExpired(cookie)) return;
    this.#cookies.set(name, cookie);
    for (const oldest of this.#cookies.keys()) {
      if (this.#cookies.size <= maxCookies && this.#length <= maxJarLength) break;
      this.#cookies.delete(oldest);
    }
  }

  get #length(): number {
    let length = 0;
    for (const [name, { value, path }] of this.#cookies) length += name.length + value.length + path.length;
    return length;
  }

  /**
   * Adds the cookies for this URL to the headers of a request. A cookie of the client or the operator stays as it is.
   */
  addTo(headers: Readonly<Record<string, string>>, url: URL): Readonly<Record<string, string>> {
    if (this.#cookies.size === 0) return headers;
    const header = Object.keys(headers).find((name) => name.toLowerCase() === 'cookie') ?? 'cookie';
    const given = headers[header];
    const givenNames = new Set(given?.split(';').map((pair) => pair.trim().split('=')[0]));
    const pairs: string[] = given === undefined ? [] : [given];
    for (const [name, cookie] of this.#cookies) {
      if (isExpired(cookie)) this.#cookies.delete(name);
      else if (!givenNames.has(name) && isFor(cookie, url)) pairs.push(`${name}=${cookie.value}`);
    }
    return pairs.length === 0 ? headers : { ...headers, [header]: pairs.join('; ') };
  }
}

function readCookie(value: string, attributes: readonly string[], url: URL): Cookie {
  const read = new Map(
    attributes.map((attribute) => {
      const [name = '', ...rest] = attribute.split('=');
      return [name.trim().toLowerCase(), rest.join('=').trim()] as const;
    }),
  );
  const path = read.get('path');
  const folder = url.pathname.slice(0, Math.max(url.pathname.lastIndexOf('/'), 1));
  return {
    value,
    path: path?.startsWith('/') ? path : folder,
    isSecure: read.has('secure'),
    expiresAt: readExpiry(read.get('max-age'), read.get('expires')),
  };
}

/** `Max-Age` comes before `Expires` (RFC 6265, section 5.3). */
function readExpiry(maxAge: string | undefined, expires: string | undefined): number | undefined {
  if (maxAge !== undefined && /^-?\d+$/.test(maxAge)) return Date.now() + Number(maxAge) * 1_000;
  const at = expires === undefined ? Number.NaN : Date.parse(expires);
  return Number.isNaN(at) ? undefined : at;
}

const isExpired = ({ expiresAt }: Cookie): boolean => expiresAt !== undefined && expiresAt <= Date.now();

function isFor({ path, isSecure }: Cookie, { pathname, protocol }: URL): boolean {
  if (isSecure && protocol !== 'https:' && protocol !== 'wss:') return false;
  return pathname === path || pathname.startsWith(path.endsWith('/') ? path : `${path}/`);
}
