import type { ProtocolRequirement } from './requirement.ts';

/** docs/protocol.md, section 6: stdio, client side of the gateway. */
export const section6: readonly ProtocolRequirement[] = [
  {
    id: 'R6.01',
    source: 'STD26, T25',
    level: 'MUST',
    text: 'Each message to the child process is one line of UTF-8 without embedded line breaks. U+2028 and U+2029 are not line breaks.',
  },
  {
    id: 'R6.02',
    source: 'STD26, T25',
    level: 'MUST',
    text: 'The gateway writes only valid MCP messages to the stdin of a child process.',
  },
  {
    id: 'R6.02b',
    source: 'STD26',
    level: 'MUST',
    text: 'The gateway never writes a response to the stdin of a modern server.',
  },
  {
    id: 'R6.03',
    source: 'STD26',
    level: 'MUST',
    text: 'Lines on stdout that are not JSON-RPC are dropped and logged. Multi-byte characters that are split between reads remain intact.',
  },
  {
    id: 'R6.04',
    source: 'STD26, T25',
    level: 'SHOULD',
    text: 'Output of a child process on stderr is never treated as an error.',
  },
  {
    id: 'R6.05',
    source: 'STD26, VER',
    level: 'SHOULD',
    text: 'The gateway first probes a server with server/discover. If the answer is not recognizably modern, the gateway falls back to initialize.',
  },
  {
    id: 'R6.06',
    source: 'STD26',
    level: 'MUST',
    text: 'The probe does not use a process that serves clients, because some servers exit when they are probed.',
  },
  {
    id: 'R6.07',
    source: 'VER',
    level: 'SHOULD',
    text: 'The gateway remembers the era of each server, and probes the server again if that era fails later.',
  },
  {
    id: 'R6.08',
    source: 'STD26',
    level: 'MUST',
    text: 'All clients that may share a process of a modern server use one process. Their ids, tokens and _meta never mix.',
  },
  {
    id: 'R6.09',
    source: 'VER',
    level: 'MUST',
    text: 'A legacy child process gets one initialize. With share: session, two sessions never share a child process.',
  },
  {
    id: 'R6.09b',
    source: 'VER',
    level: 'MAY',
    text: 'Modern requests of the same group share a legacy process that the gateway has initialized.',
  },
  {
    id: 'R6.10',
    source: 'STD26, CAN',
    level: 'MUST',
    text: 'When a request in flight is cancelled, the server gets notifications/cancelled with the id that the gateway sent to the server.',
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
    text: 'JSON-RPC requests from a modern server never reach a client. The gateway answers these requests with -32601.',
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
    text: 'To end a child process, the gateway closes its stdin, then sends SIGTERM, then SIGKILL. No child process remains after a session or a SIGTERM.',
  },
  {
    id: 'R6.14b',
    source: 'STD26, T25',
    level: 'SHOULD',
    text: 'No child process remains after the gateway crashes and starts again.',
  },
  {
    id: 'R6.15',
    source: 'STD26',
    level: 'SHOULD',
    text: 'When a child process exits, its pending requests get errors immediately. The next session gets a new child process.',
  },
  {
    id: 'R6.15b',
    source: 'STD26',
    level: 'SHOULD',
    text: 'When a child process exits, its session continues with a restored child process.',
  },
];
