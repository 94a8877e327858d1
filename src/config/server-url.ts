import type { IssueMessage } from './issues.ts';
import type { ViewMember } from './servers/view-names.ts';

/** The address of a remote server and its transport. */
export type ServerAddress =
  | { readonly transport: TransportChoice | 'ws'; readonly url: URL }
  | { readonly transport: 'tcp'; readonly host: string; readonly port: number }
  | { readonly transport: 'unix'; readonly path: string }
  /** Other servers of the configuration, combined, and the number of their processes. */
  | {
      readonly transport: 'view';
      readonly members: readonly ViewMember[];
      readonly timeoutMs: number;
      readonly processes: number;
      /** True if clients find tools by a search. */
      readonly searchTools: boolean;
      /** The client headers that policies of the servers see; undefined without such a policy. */
      readonly shown?: readonly string[] | undefined;
      /** True if a server cuts long results, which clients of the view can read. */
      readonly cutsResults?: true;
      /** Those of the servers that get something of each client; undefined if there is none. */
      readonly receivers?: readonly ViewReceiver[] | undefined;
    };

/** A server of a view that gets headers, credentials or tokens of each client. */
export interface ViewReceiver {
  readonly name: string;
  readonly forwardHeaders: readonly string[];
  /** As they are configured. */
  readonly credentials: Readonly<Record<string, string>>;
  /** True for a STDIO server, which gets credentials as variables. */
  readonly isLocal: boolean;
  readonly exchangesTokens: boolean;
}

/** The transport at an http(s):// URL: Streamable HTTP, HTTP+SSE, or whichever the gateway detects. */
export type TransportChoice = 'auto' | 'http' | 'sse';

/** True for a server that can receive headers. */
export const hasHeaders = (address: ServerAddress | undefined): boolean => address !== undefined && 'url' in address;

/** An address, or the fault in the text. The message never repeats the text, which may contain a secret (P12). */
export type ReadUrl =
  | { readonly ok: true; readonly address: ServerAddress }
  | { readonly ok: false; readonly message: IssueMessage };

/** Operating systems accept socket paths up to 107 bytes (Linux) or 103 bytes (macOS). */
const maxSocketPathBytes = 103;

/**
 * Reads the URL of a server: http(s):// for Streamable HTTP and HTTP+SSE, ws(s):// for WebSocket, tcp:// and unix://
 * for lines on a socket.
 */
export function readServerUrl(text: string, transport: TransportChoice): ReadUrl {
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(text)?.[1]?.toLowerCase() ?? '';
  if (scheme === 'http' || scheme === 'https') return readWebUrl(text, transport);
  const read = readers.get(scheme);
  if (read === undefined) return fault('must begin with http://, https://, ws://, wss://, tcp:// or unix://');
  if (transport !== 'auto') return fault(`is a ${scheme}:// URL, which has only one transport; remove the transport`);
  return read(text);
}

const fault = (message: IssueMessage): ReadUrl => ({ ok: false, message });

/** Reads an http(s):// or ws(s):// URL. */
function readWebUrl(text: string, transport: TransportChoice | 'ws'): ReadUrl {
  // URL parsers drop or convert these characters. They are refused, so that the gateway uses exactly the given URL.
  if (/[^\x21-\x7e]|\\/.test(text) || !URL.canParse(text)) return fault('is not a valid URL');
  const url = new URL(text);
  if (url.username !== '' || url.password !== '') {
    return fault((nameOf) => {
      const isInFile = nameOf('headers') === 'headers';
      const header = isInFile
        ? '"headers": { "Authorization": "Basic …" }'
        : `${nameOf('headers')} 'Authorization: Basic …'`;
      return `must not contain a user name or a password; write ${header} instead, with the Base64 of user:password`;
    });
  }
  url.hash = '';
  return { ok: true, address: { transport, url } };
}

function readTcpUrl(text: string): ReadUrl {
  const [, host, digits] = /^tcp:\/\/(\[[0-9a-f:.]+\]|[a-z0-9._-]+):(\d{1,5})\/?$/i.exec(text) ?? [];
  const port = Number(digits);
  if (host === undefined || port < 1 || port > 65535) return fault('must be tcp://host:port');
  return { ok: true, address: { transport: 'tcp', host: host.replace(/^\[|\]$/g, ''), port } };
}

function readUnixUrl(text: string): ReadUrl {
  const path = text.slice('unix://'.length);
  if (!path.startsWith('/') || path === '/' || path.includes('\0')) {
    return fault('must be unix:// followed by the absolute path of a socket, such as unix:///run/server.sock');
  }
  if (Buffer.byteLength(path) > maxSocketPathBytes) {
    return fault(
      `has a socket path of more than ${maxSocketPathBytes} bytes, which operating systems do not support; use a shorter path`,
    );
  }
  return { ok: true, address: { transport: 'unix', path } };
}

/** Readers for the schemes that have only one transport. */
const readers: ReadonlyMap<string, (text: string) => ReadUrl> = new Map([
  ['ws', (text) => readWebUrl(text, 'ws')],
  ['wss', (text) => readWebUrl(text, 'ws')],
  ['tcp', readTcpUrl],
  ['unix', readUnixUrl],
]);
