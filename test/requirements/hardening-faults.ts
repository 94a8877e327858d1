import type { Requirement } from './requirement.ts';

/** docs/hardening.md: Faults to survive. */
export const faults: readonly Requirement[] = [
  {
    id: 'F01',
    text: 'kill -9 of an owner in mid-request: taken over within lease + 2 s, each pending request run again or answered.',
  },
  {
    id: 'F02',
    text: 'An owner frozen past its lease is fenced, nothing of it reaches clients, and its children end.',
  },
  {
    id: 'F03',
    text: "kill -9 of a client's instance that is not the owner: the resume elsewhere is identical.",
  },
  {
    id: 'F04',
    text: 'An owner whose mailbox loop is dead loses its lease, and is replaced.',
  },
  {
    id: 'F05',
    text: 'A Redis restart with its data: calls at owners go on, the rest waits, nothing is lost or doubled.',
  },
  {
    id: 'F06',
    text: 'A Redis restart without its data: sessions are registered again, and a lost history is told.',
  },
  {
    id: 'F07',
    text: 'A failover that loses writes: a client ahead of the store is told, and no id is used twice.',
  },
  {
    id: 'F08',
    text: 'A slow or silent Redis: commands time out, health stays up, the blocking reader recovers.',
  },
  {
    id: 'F09',
    text: 'A full Redis: no event is sent unstored, calls end with an error, leases hold.',
  },
  {
    id: 'F10',
    text: 'A flushed script cache, or a cut before the reply: asked again with the same ids, ALREADY and no duplicate.',
  },
  {
    id: 'F11',
    text: 'An instance cut off from Redis turns unready, others take over, and on return it gives up what was taken.',
  },
  {
    id: 'F12',
    text: 'A child that exits, is killed or never starts: pending calls are answered and the session is restored or ended.',
  },
  {
    id: 'F13',
    text: 'A child that hangs: the request times out and is cancelled, others are unaffected.',
  },
  {
    id: 'F14',
    text: 'A stdout flood pauses the child; memory stays flat and health fast.',
  },
  {
    id: 'F15',
    text: 'A giant line ends at the limit in linear time, and all calls in flight are answered.',
  },
  { id: 'F16', text: 'UTF-8 split at every byte, CRLF, a BOM and CR inside of JSON leave the message intact.' },
  {
    id: 'F17',
    text: 'Invalid UTF-8, no JSON, no JSON-RPC, a batch and answers to unknown ids are dropped and counted; the session goes on.',
  },
  { id: 'F18', text: 'A stderr flood is always drained, logged at a limited rate, and never reaches a client.' },
  {
    id: 'F19',
    text: 'A child that forks, ignores SIGTERM or leaves stdout to a grandchild ends with its group; no zombie is left.',
  },
  {
    id: 'F20',
    text: 'A slow SSE reader is cut at its limit and resumes completely; others do not notice.',
  },
  {
    id: 'F21',
    text: 'A half-open connection is bounded by the maximum stream age, and idle sessions end while a GET is open.',
  },
  { id: 'F22', text: 'A client that drops in a POST stream collects its answer by GET.' },
  {
    id: 'F23',
    text: 'A client that drops in an upload: no child is started and nothing is forwarded.',
  },
  {
    id: 'F24',
    text: '2,000 resumes in a second after an instance died: nothing but 503, bounded Redis commands, recovery in 30 s.',
  },
  {
    id: 'F25',
    text: 'A resume at the seam of replay and live under load has no gap and no double.',
  },
  {
    id: 'F26',
    text: 'A storm of new sessions meets limits with 503 and leaves no orphan.',
  },
  {
    id: 'F26b',
    text: 'A storm of new sessions meets the limits of its principal with 429.',
  },
  {
    id: 'F27',
    text: 'SIGTERM with open streams, twice, and with a close that throws: the drain finishes.',
  },
  {
    id: 'F28',
    text: 'A legacy HTTP server that fails in any way gets 502 or 504 or an in-band error, and is restored with backoff.',
  },
  {
    id: 'F29',
    text: 'A clock jump or a stalled event loop loses nothing on one instance.',
  },
  { id: 'F29b', text: 'A clock jump or a stalled event loop causes no false takeover.' },
  {
    id: 'F30',
    text: 'A long soak with random faults has flat resources and no broken promise.',
  },
];
