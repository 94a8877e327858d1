import type { Requirement } from './requirement.ts';

/** docs/hardening.md: Security properties. */
export const properties: readonly Requirement[] = [
  {
    id: 'S01',
    text: 'A session id has 128 bits or more from a secure source, is visible ASCII, and stays out of URLs and logs.',
  },
  {
    id: 'S01b',
    text: "The old face's endpoint token is another one, useless at the main endpoint and bound to the principal.",
  },
  {
    id: 'S02',
    text: 'A session belongs to its principal and the scopes it used; to anyone else it does not exist.',
  },
  {
    id: 'S03',
    text: 'Each request is authorised, and an expired token closes open streams.',
  },
  {
    id: 'S04',
    text: "A client's token reaches no child and no upstream except where that is configured.",
  },
  { id: 'S05', text: 'Origin is always checked, Host on loopback binds or when configured; look-alikes are refused.' },
  {
    id: 'S06',
    text: 'Nothing that a child or a client sends can inject SSE fields or events.',
  },
  {
    id: 'S07',
    text: 'A foreign or guessed event id never gives a byte of another session.',
  },
  { id: 'S08', text: 'A forged event id is refused by a strict form.' },
  {
    id: 'S09',
    text: 'No id reaches a Redis key or command unhashed or outside of ARGV.',
  },
  { id: 'S10', text: 'No server can make the gateway call another origin.' },
  { id: 'S11', text: "A legacy server's own session id never reaches clients or logs." },
  {
    id: 'S12',
    text: 'Commands come from the configuration alone, as an argument array without a shell; nothing of a client is in argv.',
  },
  { id: 'S13', text: "A child's environment is an allow-list, and no descriptor beyond 0-2 is inherited." },
  { id: 'S14', text: 'Logs at info hold no session id, token, params or results.' },
  {
    id: 'S14b',
    text: 'Canary secrets of a whole test run appear in no log, metric or error.',
  },
  { id: 'S15', text: 'Errors disclose no stack, path, host or Redis text.' },
  {
    id: 'S16',
    text: 'No hop-by-hop header is forwarded, and a chunked upstream request gets a fresh connection.',
  },
  { id: 'S17', text: 'Bombs of size, depth and gzip cost neither time nor memory.' },
  { id: 'S18', text: 'Keys such as __proto__ and constructor, wherever a peer may send them, are only keys.' },
  { id: 'S19', text: 'No regular expression takes more than 5 ms on 64 KiB of anything.' },
  { id: 'S20', text: 'Quotas hold for each principal, and others are unaffected.' },
  { id: 'S21', text: 'Metrics and health carry no ids and no labels of high cardinality.' },
  {
    id: 'S22',
    text: 'The container runs as non-root on a read-only root with an init, without secrets in its layers.',
  },
  { id: 'S22b', text: 'Redis with AUTH and TLS is supported.' },
  { id: 'S23', text: 'A malicious server is confined to its session.' },
];
