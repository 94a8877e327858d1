import * as z from 'zod/mini';
import { headerKeys } from '../../core/protocol/known-revisions.ts';
import { list, map } from './option-kinds.ts';

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

/** The option for headers of the gateway itself. */
export const headersOption = map('headers', headers, "Header for a server at a URL, 'Name: value'; repeatable.", {
  short: '--header',
  otherFlags: ['--headers'],
  secrets: 'texts',
});

/** The option for headers of clients. */
export const forwardHeadersOption = list(
  forwardHeader,
  'Client header to forward to a server at an http(s):// or ws(s):// URL, such as Authorization; repeatable.',
);
