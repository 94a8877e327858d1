import * as z from 'zod/mini';
import { headerKeys } from '../../protocol/known-revisions.ts';
import type { TransportChoice } from '../server-url.ts';
import { longestMs, second } from '../units.ts';
import { duration, file, list, type Option, text } from './option-kinds.ts';

/** Headers that the transport sets itself, or that decide where a request ends and which host gets it. */
const ownHeaders = new Set([
  'accept',
  'accept-encoding',
  'cache-control',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'expect',
  'host',
  'keep-alive',
  'last-event-id',
  ...headerKeys.values(),
  'mcp-session-id',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'sec-websocket-accept',
  'sec-websocket-extensions',
  'sec-websocket-key',
  'sec-websocket-protocol',
  'sec-websocket-version',
]);

const isOwn = (name: string): boolean => ownHeaders.has(name) || name.startsWith('mcp-param-');

/** The form of a header name in lower case (RFC 9110, section 5.6.2). */
const nameForm = /^[!#$%&'*+.^_`|~0-9a-z-]+$/;

const headers = z
  .record(
    z.string(),
    z.string({ error: 'must be a string' }).check(
      z.regex(/^[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?$/, {
        error: 'must be visible ASCII on one line, and not empty',
      }),
    ),
    { error: "must be 'Name: value' on the command line and an object of strings in the file" },
  )
  .check(
    z.superRefine((value, context) => {
      const names = Object.keys(value).map((name) => name.toLowerCase());
      const report = (message: string) => context.addIssue({ code: 'custom', message });
      if (!names.every((name) => nameForm.test(name))) report('has an invalid header name');
      if (new Set(names).size < names.length) report('has the same header twice');
      const own = names.find(isOwn);
      if (own !== undefined) report(`must not have ${own}, which the gateway sets itself; remove it`);
    }),
  );

/** The reason why a header must not pass from a client to a server. The name is in lower case. */
export function headerFault(name: string): string | undefined {
  if (!nameForm.test(name)) return 'is not a valid header name';
  if (isOwn(name)) return `is ${name}, which the gateway sets itself`;
  return name === 'proxy-authorization' ? `is ${name}, which is meant only for the next proxy` : undefined;
}

const forwardHeader = z.string({ error: 'must be the name of a header' }).check(
  z.toLowerCase(),
  z.superRefine((name, context) => {
    const message = headerFault(name);
    if (message !== undefined) context.addIssue({ code: 'custom', message });
  }),
);

/** Options that only a server at a URL can use. */
export const remoteOnlyOptions = ['headers', 'forwardHeaders', 'transport', 'auth', 'identity'] as const;

/** Options of a server at a URL; a part of `serverOptions`. */
export const remoteOptions = {
  transport: text<TransportChoice>(
    'auto',
    z.enum(['auto', 'http', 'sse'], { error: 'must be auto, http or sse' }),
    'Transport of a server at a URL: http, sse or auto.',
  ),
  headers: {
    kind: 'headers',
    schema: headers,
    default: {},
    description: "Header for a server at a URL, 'Name: value'; repeatable.",
    bounds: '',
  } as Option<Readonly<Record<string, string>>>,
  forwardHeaders: {
    ...list(
      forwardHeader,
      'Client header to forward to a server at an http(s):// or ws(s):// URL, such as Authorization; repeatable.',
    ),
  },
  auth: text<'gateway' | 'upstream'>(
    'gateway',
    z.enum(['gateway', 'upstream'], { error: 'must be gateway or upstream' }),
    "Who authenticates clients. With upstream, clients authorize at the server's own OAuth, and the gateway passes on tokens, 401 and 403. Only for servers at an http(s):// URL.",
  ),
  upstreamCa: text<string | undefined>(
    undefined,
    file,
    "File with the CA certificates (PEM) for https:// and wss:// servers, instead of the system's.",
  ),
  upstreamCert: text<string | undefined>(
    undefined,
    file,
    'File with the client certificate (PEM) for https:// and wss:// servers.',
  ),
  upstreamKey: text<string | undefined>(undefined, file, 'File with the private key (PEM) of --defaults.tls.cert.'),
  connectTimeoutMs: duration(
    10 * second,
    [1, longestMs],
    'Time limit for connecting to a remote server. Its first answer may take longer (--defaults.timeouts.start).',
  ),
  endpointTimeoutMs: duration(
    10 * second,
    [1, longestMs],
    'Time limit for an HTTP+SSE server to send its endpoint event after its stream has started.',
  ),
  postTimeoutMs: duration(
    60 * second,
    [1, longestMs],
    'Time limit for an http(s):// server to accept a notification or a response. Requests have their own time limits (--timeouts.requestIdle and --timeouts.requestTotal).',
  ),
  upstreamIdleMs: duration(
    0,
    [0, longestMs],
    'Time for which a stream of an http(s):// server may be silent; 0 for no limit. Use this limit only for servers that send keep-alive comments.',
  ),
} as const;
