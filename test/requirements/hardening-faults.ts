import type { Requirement } from './requirement.ts';

/** docs/hardening.md: Faults to survive. */
export const faults: readonly Requirement[] = [
  {
    id: 'F01',
    text: 'If an owner is killed (kill -9) during requests, another instance takes over within the lease time plus 2 s. Each pending request is repeated or answered.',
  },
  {
    id: 'F02',
    text: 'An owner that is frozen beyond its lease is fenced. None of its messages reach clients, and its child processes end.',
  },
  {
    id: 'F03',
    text: 'If an instance that is not the owner is killed (kill -9), clients that resume on another instance get identical events.',
  },
  {
    id: 'F04',
    text: 'If an owner cannot renew its lease, the owner loses it and is replaced.',
  },
  {
    id: 'F05',
    text: 'When Redis restarts with its data, calls at their owners continue and other calls wait. No message is lost or duplicated.',
  },
  {
    id: 'F06',
    text: 'When Redis restarts without its data, sessions are registered again and clients are notified of lost history.',
  },
  {
    id: 'F07',
    text: 'After a failover that loses writes, clients are notified if the store lost their events. No event id is used twice.',
  },
  {
    id: 'F08',
    text: 'If Redis is slow or silent, commands time out, health checks still answer, and the blocking reader recovers.',
  },
  {
    id: 'F09',
    text: 'If Redis is full, no event id is sent without its event being stored, a client gets an answer that cannot be stored in time without an event id, and leases remain valid.',
  },
  {
    id: 'F10',
    text: 'After the Redis script cache is flushed or a reply is lost, the command is repeated with the same ids. An append that already ran returns ALREADY and does not store a duplicate.',
  },
  {
    id: 'F11',
    text: 'An instance that is cut off from Redis becomes unready, and others take over. After the outage, the instance releases the sessions that it lost.',
  },
  {
    id: 'F12',
    text: 'If a child process exits, is killed or never starts, pending calls are answered. The session of the child process is restored or ended.',
  },
  {
    id: 'F13',
    text: 'If a child process hangs, the request to this process times out and is cancelled, and other requests are unaffected.',
  },
  {
    id: 'F14',
    text: 'If a child process floods stdout, the gateway pauses reading from it. Memory stays flat, and health checks stay fast.',
  },
  {
    id: 'F15',
    text: 'The gateway stops reading an oversized line at the limit. The cost of the line is linear in its length, and all calls in flight are answered.',
  },
  {
    id: 'F16',
    text: 'A message remains intact if UTF-8 is split at any byte, or if the stream has CRLF, a BOM or a CR inside JSON.',
  },
  {
    id: 'F17',
    text: 'Server output that is not valid UTF-8, JSON or JSON-RPC is corrected, or ends the call that it answers with an error. Other output is dropped and counted, and so are answers to unknown ids. Batches are split. The session continues.',
  },
  {
    id: 'F18',
    text: 'The stderr of a child process is always read, is logged at a limited rate, and never reaches a client.',
  },
  {
    id: 'F19',
    text: 'A child process that forks, ignores SIGTERM or leaves stdout to a grandchild ends with its group. No zombie remains.',
  },
  {
    id: 'F20',
    text: 'A slow SSE reader is disconnected at its limit and can resume completely. Other clients are unaffected.',
  },
  {
    id: 'F21',
    text: 'The maximum stream age limits the lifetime of half-open connections. A session whose client is gone then becomes idle and ends.',
  },
  { id: 'F22', text: 'A client that disconnects during a POST stream can retrieve its answer with GET.' },
  {
    id: 'F23',
    text: 'If a client disconnects during an upload, no child process is started and nothing is forwarded.',
  },
  {
    id: 'F24',
    text: 'If clients resume 2,000 streams within a second after an instance has died, no errors except 503 occur. The number of Redis commands is bounded, and recovery takes at most 30 s.',
  },
  {
    id: 'F25',
    text: 'Under load, a resumed stream has no gaps or duplicates between replayed and live events.',
  },
  {
    id: 'F26',
    text: 'If clients open too many sessions at once, further requests get 503, and no orphaned process remains.',
  },
  {
    id: 'F26b',
    text: 'If a principal opens too many sessions at once, further requests get 429.',
  },
  {
    id: 'F27',
    text: 'The gateway shuts down after SIGTERM despite open streams, a second SIGTERM or an exception while closing.',
  },
  {
    id: 'F28',
    text: 'If a legacy HTTP server fails in any way, its requests get 502, 504 or an in-band error. The connection is restored with backoff.',
  },
  {
    id: 'F29',
    text: 'On a single instance, nothing is lost after a clock jump or a stalled event loop.',
  },
  { id: 'F29b', text: 'A clock jump or a stalled event loop does not cause a false takeover.' },
  {
    id: 'F30',
    text: 'In a long soak test with random faults, resource use stays flat and no promise is broken.',
  },
];
