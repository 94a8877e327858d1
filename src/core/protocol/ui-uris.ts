import { changedMessage } from './message/changed-message.ts';
import { type Message, memberRange } from './message/message.ts';
import { extensions, type PageUris } from './methods/extensions.ts';

const escapeSign = '\\u00';

/** The escapes of a character in JSON. */
const escapesOf = (character: string): string[] => {
  const code = character.charCodeAt(0).toString(16).padStart(2, '0');
  return [escapeSign + code, escapeSign + code.toUpperCase()];
};

/** The URIs of each extension with pages that clients show and run, such as MCP Apps, and the signs of one in a text. */
const kinds = extensions.flatMap(({ pages }) =>
  pages === undefined
    ? []
    : [
        {
          ...pages,
          plainSign: pages.scheme.slice(0, -2),
          escapedSigns: [...new Set([...pages.scheme].flatMap(escapesOf))],
        },
      ],
);

/** True for the URI of a page that clients show and run. */
export const isUiUri = (uri: string): boolean => kinds.some(({ scheme }) => uri.startsWith(scheme));

/**
 * A text without any of these signs has no such string. The escapes are only looked for if there is one of their kind: in
 * a text full of other escapes, each search takes long (P8).
 */
const mayHaveUri = (text: Buffer, { plainSign, escapedSigns }: (typeof kinds)[number]): boolean =>
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
    return kinds.some(({ scheme }) => uri.startsWith(`${scheme}${this.#host}/`));
  }

  /** A message of the server, as clients get it. Undefined if it has too many URIs. */
  forClient(message: Message): Message | undefined {
    return change(message, 'openings', (found) => `${found}${this.#host}/`);
  }

  /** A message of a client, as the server gets it. Undefined if it has too many URIs. */
  forServer(message: Message): Message | undefined {
    return change(message, 'hostedOpenings', (found, start = '', host) => (host === this.#host ? start : found));
  }
}

type ChangeOf = (found: string, start?: string, host?: string) => string;

/** Changes the strings in a message's params or result that begin as a pattern of each kind says. */
function change(message: Message, pattern: 'openings' | 'hostedOpenings', by: ChangeOf): Message | undefined {
  let changed: Message | undefined = message;
  for (const kind of kinds)
    if (changed !== undefined && mayHaveUri(changed.text, kind)) changed = changeAll(changed, kind[pattern], by);
  return changed;
}

function changeAll(message: Message, pattern: PageUris['openings'], by: ChangeOf): Message | undefined {
  const { text } = message;
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
