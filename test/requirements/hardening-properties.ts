import type { Requirement } from './requirement.ts';

/** docs/hardening.md: Security properties. */
export const properties: readonly Requirement[] = [
  {
    id: 'S01',
    text: 'A session id is visible ASCII with at least 128 bits from a secure random source. Session ids never appear in URLs or logs.',
  },
  {
    id: 'S01b',
    text: 'An HTTP+SSE endpoint token differs from the session id. The token is useless at the main endpoint, and is bound to its principal.',
  },
  {
    id: 'S02',
    text: 'Only the principal that opened a session can use it. For all others, the session is unknown. Each request needs its own scopes, also in an open session.',
  },
  {
    id: 'S03',
    text: 'Each request is authorized, and an open stream is closed when its token expires.',
  },
  {
    id: 'S04',
    text: "A client's token never reaches a child process or an upstream server unless forwarding is configured.",
  },
  {
    id: 'S05',
    text: 'Origin is always checked. Host is checked on loopback addresses, and on other addresses if configured. Lookalike names are refused.',
  },
  {
    id: 'S06',
    text: 'Data from a child process or a client cannot inject SSE fields or events.',
  },
  {
    id: 'S07',
    text: 'A foreign or guessed event id never returns a byte of another session.',
  },
  { id: 'S08', text: 'A strict format check refuses forged event ids.' },
  {
    id: 'S09',
    text: 'Ids are hashed in Redis keys, and appear in Redis commands only in ARGV.',
  },
  { id: 'S10', text: 'No server can make the gateway send requests to another origin.' },
  { id: 'S11', text: 'The session id of a legacy server never reaches clients or logs.' },
  {
    id: 'S12',
    text: 'Commands come only from the configuration, as an argument array without a shell. The argument array contains no client data.',
  },
  {
    id: 'S13',
    text: 'A child process inherits only allow-listed environment variables and the file descriptors 0 to 2.',
  },
  { id: 'S14', text: 'Logs at level info contain no session ids, tokens, params or results.' },
  {
    id: 'S14b',
    text: 'Canary secrets from a whole test run appear in no log, metric or error.',
  },
  { id: 'S15', text: 'Errors disclose no stacks, paths, hosts or Redis messages.' },
  {
    id: 'S16',
    text: 'No hop-by-hop header is forwarded, and a chunked upstream request gets a new connection.',
  },
  { id: 'S17', text: 'Size bombs, depth bombs and gzip bombs consume neither much time nor much memory.' },
  { id: 'S18', text: 'Keys such as __proto__ and constructor have no special effect, wherever a peer sends them.' },
  { id: 'S19', text: 'No regular expression takes more than 5 ms for any input of 64 KiB.' },
  { id: 'S20', text: 'Quotas apply to each principal separately, and other principals are unaffected.' },
  { id: 'S21', text: 'Metrics and health reports contain no ids or high-cardinality labels.' },
  {
    id: 'S22',
    text: 'The container runs as a non-root user on a read-only root file system with an init process. Its layers contain no secrets.',
  },
  { id: 'S22b', text: 'Redis with AUTH and TLS is supported.' },
  { id: 'S23', text: 'A malicious server can affect only its own session.' },
];
