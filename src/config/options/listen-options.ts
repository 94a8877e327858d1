import * as z from 'zod/mini';
import { choice, fileOption, integer, list, matching, optionalText, plainUrl, text } from './option-kinds.ts';

const path = matching(
  /^(?:\/(?!\.{1,2}(?:\/|$))[A-Za-z0-9._~-]+)+$/,
  'must begin with / and contain only letters, digits and . _ ~ - between slashes, without a trailing slash, such as /mcp',
).check(
  z.refine((value) => !/^\/(?:healthz|readyz|metrics|\.well-known)(?:\/|$)/.test(value), {
    error: 'must not begin with /healthz, /readyz, /metrics or /.well-known: the gateway uses these paths itself',
  }),
);

const host = matching(/^[^\s/]+$/, 'must be an IP address or a host name');

/** The branch `listen`: the addresses of the gateway. */
export const listenOptions = {
  host: text('127.0.0.1', host, 'Address to listen on; 0.0.0.0 or :: for all.', {
    short: '--host',
    otherFlags: ['--bind', '--address', '--listen', '--hostname'],
  }),
  port: integer(8080, [0, 65535], 'Port to listen on; 0 for any free port.', { short: '--port' }),
  path: text('/mcp', path, 'Path of the endpoint. With several servers, it follows /<name>.', {
    short: '--path',
    otherFlags: ['--endpoint', '--mcp-path'],
  }),
  publicUrl: optionalText(
    z.pipe(
      plainUrl(false),
      z.transform((value) => value.replace(/\/$/, '')),
    ),
    'URL at which clients reach the gateway. It does not contain the path of an endpoint. The gateway prints this URL and accepts its host. The audience of a token is the URL of an endpoint below this URL.',
    {
      short: '--public-url',
      otherFlags: ['--base-url', '--external-url'],
      pattern: '^[hH][tT][tT][pP][sS]?://[^?#\\s"]+$',
    },
  ),
  adminPort: integer(
    9464,
    [0, 65535],
    'Port of the status page and metrics; 0 for none. This operator port also has /metrics for Prometheus, /healthz and /readyz.',
    { short: '--admin-port' },
  ),
  adminHost: text(
    '127.0.0.1',
    host,
    'Address of the operator port. Use 0.0.0.0 or :: if Prometheus runs on another machine or in another container. The value off disables the port and is the default in the image.',
  ),
  allowedOrigins: list(
    matching(
      /^(?:\*|[a-z][a-z0-9+.-]*:\/\/(?:\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{1,5})?)$/i,
      'must be * or an origin such as https://app.example.com, without a path',
    ).check(z.toLowerCase()),
    'Web origin to allow; * for all; repeatable.',
    { short: '--allow-origin', otherFlags: ['--cors', '--cors-origin', '--cors-origins'] },
  ),
  allowedHosts: list(
    matching(
      /^(?:\*|(?:\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{1,5})?)$/i,
      'must be * or a host name such as mcp.example.com, with or without a port',
    ).check(z.toLowerCase()),
    'Host name to allow; * for all; repeatable.',
    { short: '--allow-host' },
  ),
  tls: {
    cert: fileOption(
      'File with the TLS certificate and its chain (PEM). With a certificate, clients must use https and wss.',
      { short: '--tls-cert' },
    ),
    key: fileOption('File with the private key of --tls-cert (PEM).', {
      short: '--tls-key',
    }),
  },
  serverCards: choice(
    ['auto', 'public', 'off'],
    'Experimental: documents that describe the servers to clients (SEP-2127). auto: only for servers without authentication. public: for all servers, readable by anyone; requires --public-url. off: none.',
    { isAdvanced: true },
  ),
};
