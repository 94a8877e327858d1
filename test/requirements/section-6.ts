import type { ProtocolRequirement } from './requirement.ts';

/** docs/protocol.md, section 6: stdio, client side of the gateway. */
export const section6: readonly ProtocolRequirement[] = [
  {
    id: 'R6.01',
    source: 'STD26, T25',
    level: 'MUST',
    text: 'Each message to the child is one line of UTF-8 without a line break inside; U+2028 and U+2029 are none.',
  },
  {
    id: 'R6.02',
    source: 'STD26, T25',
    level: 'MUST',
    text: "Only valid MCP messages go to the child's stdin.",
  },
  {
    id: 'R6.02b',
    source: 'STD26',
    level: 'MUST',
    text: "No response goes to a modern server's stdin.",
  },
  {
    id: 'R6.03',
    source: 'STD26',
    level: 'MUST',
    text: 'Lines on stdout that are not JSON-RPC are dropped and logged, and split multi-byte characters survive.',
  },
  {
    id: 'R6.04',
    source: 'STD26, T25',
    level: 'SHOULD',
    text: 'What a child writes to stderr is never taken as an error.',
  },
  {
    id: 'R6.05',
    source: 'STD26, VER',
    level: 'SHOULD',
    text: 'A server is probed by server/discover first; what is not recognizably modern falls back to initialize.',
  },
  {
    id: 'R6.06',
    source: 'STD26',
    level: 'MUST',
    text: 'The probe does not cost the process that serves, since some servers exit on it.',
  },
  {
    id: 'R6.07',
    source: 'VER',
    level: 'SHOULD',
    text: 'The era is remembered per server and probed again if it fails later.',
  },
  {
    id: 'R6.08',
    source: 'STD26',
    level: 'MUST',
    text: 'A modern server is one process for all clients, whose ids, tokens and _meta never mix.',
  },
  {
    id: 'R6.09',
    source: 'VER',
    level: 'MUST',
    text: 'A legacy child gets one initialize, and two sessions never share a child.',
  },
  {
    id: 'R6.09b',
    source: 'VER',
    level: 'MAY',
    text: 'Modern requests share a legacy process that the gateway initialized, within their group.',
  },
  {
    id: 'R6.10',
    source: 'STD26, CAN',
    level: 'MUST',
    text: 'Cancelling a request in flight sends notifications/cancelled with the id that the server knows.',
  },
  {
    id: 'R6.11',
    source: 'T25, CAN',
    level: 'MUST',
    text: 'initialize is never cancelled.',
  },
  {
    id: 'R6.12',
    source: 'STD26',
    level: 'MUST',
    text: 'A JSON-RPC request from a modern server is dropped.',
  },
  {
    id: 'R6.13',
    source: 'CAN',
    level: 'SHOULD',
    text: 'Late messages for a cancelled request are dropped.',
  },
  {
    id: 'R6.14',
    source: 'STD26, T25',
    level: 'SHOULD',
    text: 'A child is ended by closing stdin, then SIGTERM, then SIGKILL; none is left after a session or a SIGTERM.',
  },
  {
    id: 'R6.14b',
    source: 'STD26, T25',
    level: 'SHOULD',
    text: 'No child is left after a crash of the gateway and its next start.',
  },
  {
    id: 'R6.15',
    source: 'STD26',
    level: 'SHOULD',
    text: 'When a child dies its pending requests get errors at once, and the next session gets a new child.',
  },
  {
    id: 'R6.15b',
    source: 'STD26',
    level: 'SHOULD',
    text: 'When a child dies its session goes on with a restored one.',
  },
];
