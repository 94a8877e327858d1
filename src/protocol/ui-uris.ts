import { changedMessage, type Message, memberRange } from './message/message.ts';

const scheme = 'ui://';

/** True for the URI of a page that clients show and run (MCP Apps). */
export const isUiUri = (uri: string): boolean => uri.startsWith(scheme);

/** A string that begins with `ui://`, however its characters are written. Servers in PHP write a slash as `\/`. */
const openings = /"(?:u|\\u0075)(?:i|\\u0069)(?::|\\u003[aA])(?:\\?\/|\\u002[fF]){2}/g;
/** The same with a host behind it, as `encodeURIComponent` writes one, and the slash after the host. */
const hostedOpenings =
  /("(?:u|\\u0075)(?:i|\\u0069)(?::|\\u003[aA])(?:\\?\/|\\u002[fF]){2})([\w.!~*'()%-]{1,200})(?:\\?\/|\\u002[fF])/g;

/**
 * A text without any of these has no such string. The escapes are only looked for if there is one of their kind: in a
 * text full of other escapes, each search takes long (P8).
 */
const plainSign = 'ui:';
const escapeSign = '\\u00';
const escapedSigns = ['\\u0075', '\\u0069', '\\u003a', '\\u003A', '\\u002f', '\\u002F'];
const mayHaveUri = (text: Buffer): boolean =>
  text.includes(plainSign) || (text.includes(escapeSign) && escapedSigns.some((sign) => text.includes(sign)));

/** How many URIs of one message are changed (P8). No page has nearly as many; each costs a call. */
const maxUris = 20_000;

/** The members of a message in which URIs can be. The others are ids, methods and codes. */
const parts = ['params', 'result'] as const;

/**
 * The `ui://` URIs of one of several servers behind one endpoint: `ui://app/main` of the server `git` is
 * `ui://git/app/main` for clients. A page runs code in the client, so a client must never get the page of another server
 * with the same URI. Every string that begins with `ui://` is changed, and changed back on the way to the server.
 */
export class UiUris {
  readonly #host: string;

  /** @param server the name of the server, which no other server of the endpoint has */
  constructor(server: string) {
    this.#host = encodeURIComponent(server);
  }

  /** True if a URI that a client has is one of this server. */
  isOwn(uri: string): boolean {
    return uri.startsWith(`${scheme}${this.#host}/`);
  }

  /** A message of the server, as clients get it. Undefined if it has too many URIs. */
  forClient(message: Message): Message | undefined {
    return change(message, openings, (found) => `${found}${this.#host}/`);
  }

  /** A message of a client, as the server gets it. Undefined if it has too many URIs. */
  forServer(message: Message): Message | undefined {
    return change(message, hostedOpenings, (found, start = '', host) => (host === this.#host ? start : found));
  }
}

/** Changes the strings in a message's params or result that begin as the pattern says. */
function change(
  message: Message,
  pattern: RegExp,
  by: (found: string, start?: string, host?: string) => string,
): Message | undefined {
  const { text } = message;
  if (!mayHaveUri(text)) return message;
  const range = parts.map((part) => memberRange(message, 'message', part)).find((found) => found !== undefined);
  if (range === undefined) return message;
  // One character is one byte: all that is searched and inserted is ASCII.
  const part = text.toString('latin1', range.start, range.end);
  let count = 0;
  const changed = part.replace(pattern, (found: string, ...rest: (string | number)[]) => {
    const at = rest.findIndex((value) => typeof value === 'number');
    if (isEscaped(part, rest[at] as number)) return found;
    count += 1;
    return count > maxUris ? found : by(found, ...(rest.slice(0, at) as string[]));
  });
  if (count > maxUris) return undefined;
  if (count === 0) return message;
  const texts = [text.subarray(0, range.start), Buffer.from(changed, 'latin1'), text.subarray(range.end)];
  return changedMessage(message, Buffer.concat(texts), {});
}

/** True for a quote inside of a string. */
function isEscaped(text: string, at: number): boolean {
  let start = at;
  while (text[start - 1] === '\\') start -= 1;
  return (at - start) % 2 === 1;
}
