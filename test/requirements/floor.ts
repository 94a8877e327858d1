import type { Requirement } from './requirement.ts';

/**
 * The findings of the audit, the reviews and the foreign suites of November 2026. The letter names where a finding comes from:
 * `S` the security audit, `C` the review of the core, `E` the review of the edges, `J` foreign suites (their G1 to G9), `U` refusals
 * that were untrue under faults, `M` modern clients on legacy servers and sharing, `P` people in trouble.
 */
export const floor: readonly Requirement[] = [
  {
    id: 'S-01',
    text: 'A hostile answer from a modern server at a URL can end only the call that it answers.',
  },
  {
    id: 'S-02',
    text: 'A response with a null error is refused. Such a response does not end a probe, a check or the gateway.',
  },
  {
    id: 'S-03',
    text: 'At the levels used for routing, a key is refused if simple case folding makes it equal to another key or to a known key.',
  },
  {
    id: 'S-04',
    text: 'With authentication, the admin port requires a key even on loopback. Without authentication, the port requires the code from its printed URL.',
  },
  {
    id: 'S-05',
    text: 'A complex value in a line from a server neither blocks other work nor exhausts memory.',
  },
  {
    id: 'S-06',
    text: 'A request of 4 MiB with wide objects, long filters or names that are not strings does not block other work.',
  },
  {
    id: 'S-07',
    text: 'Only the principal that created a task on a shared process can access the task, and only with the same scopes.',
  },
  {
    id: 'S-08',
    text: "API keys in the gateway's environment are hashes, because servers can read that environment.",
  },
  { id: 'S-09', text: 'The size of initialize and of its answer is limited.' },
  { id: 'S-10', text: 'HEAD requests and requests for unknown paths produce no output outside the log.' },
  {
    id: 'S-11',
    text: 'A mirrored parameter is compared with its header regardless of the number of other members in the arguments.',
  },
  { id: 'S-12', text: 'An endpoint is reachable only at its exact path, also with one slash at the end.' },
  {
    id: 'S-13',
    text: 'With authentication, one user cannot take all sessions or all slots for waiting clients.',
  },
  { id: 'S-14', text: 'Refused requests from strangers cannot flood the log or the audit log.' },
  { id: 'S-15', text: 'Message contents are prepared for display in linear time.' },
  {
    id: 'S-16',
    text: 'The lock file has the integrity hash of every package that runs in production. Releases are signed in a job without development dependencies.',
  },
  { id: 'S-17', text: 'A uri that is not a string never appears in an event.' },
  {
    id: 'S-18',
    text: "The documentation's advice on tokens, DNS rebinding, and tools on the same network as Redis is safe to follow.",
  },
  {
    id: 'S-19',
    text: 'Nothing that one message leaves in the scanner decides about another message.',
  },
  {
    id: 'S-20',
    text: 'In a place that several peers share, a peer can name only its own requests, progress tokens, tasks and URIs. Those of others do not exist for it.',
  },
  {
    id: 'S-21',
    text: 'Every table of what a peer names has a limit in bytes, and keeps no whole request. After requests of the largest size, the memory returns.',
  },
  {
    id: 'S-22',
    text: 'Strangers with invented tokens cannot lock out users whose tokens were valid before, even if the issuer answers late.',
  },
  {
    id: 'S-23',
    text: 'The store in files follows no symbolic link, and uses no directory or file of another user.',
  },
  {
    id: 'C-01',
    text: 'If a takeover is in progress at SIGTERM, the drain includes the resulting session.',
  },
  {
    id: 'C-02',
    text: 'Each request in a session needs its own scopes, whatever the requests before it needed.',
  },
  { id: 'C-03', text: 'The amount of output that a server can write during the era probe is limited.' },
  { id: 'C-04', text: 'initialize has its own size limit.' },
  { id: 'C-05', text: 'The gateway does not build an object from a related-task value, whatever its size.' },
  {
    id: 'C-06',
    text: 'If an owner denies that it has a session, another instance takes over only after three denials of the same request.',
  },
  { id: 'C-07', text: 'Records of open sessions do not expire in the memory store.' },
  { id: 'C-08', text: 'No promise rejection remains unhandled.' },
  {
    id: 'C-09',
    text: "If the gateway throws an exception while it routes a line from a server, only that server's session ends.",
  },
  {
    id: 'C-10',
    text: 'A request of another instance that cannot be read gets an answer. Requests between instances have a version.',
  },
  {
    id: 'C-11',
    text: 'Data that is kept for other instances is limited, and is deleted when those instances are gone.',
  },
  { id: 'C-12', text: 'An exception in a listener is logged, and no changes are lost.' },
  { id: 'C-13', text: 'A cached message is parsed again if the next reader has stricter limits.' },
  {
    id: 'C-14',
    text: "All messages that a lost server process had not taken are sent again, also the client's progress notifications.",
  },
  {
    id: 'C-15',
    text: 'The listeners of a forwarded request are removed when the attempt ends.',
  },
  { id: 'C-16', text: 'Session data that changes with each GET is stored separately from large data.' },
  { id: 'C-17', text: 'Changes of a session during a write of its record make one more write, with the newest state.' },
  {
    id: 'C-18',
    text: "Timers are unref'd and end with the object that created them. The lease check does not change the HTTP status of a reply.",
  },
  { id: 'E-01', text: 'A refused reload does not change the health of any server.' },
  { id: 'E-02', text: 'If the reader of an audit pipe pauses, the output continues when the reader reads again.' },
  { id: 'E-03', text: 'An exception in one request ends only that request.' },
  { id: 'E-04', text: 'A stalled reader of the log does not stall the gateway.' },
  { id: 'E-05', text: 'A flood of connections does not flood the log.' },
  { id: 'E-06', text: 'Remote administration uses TLS, or the gateway logs a warning.' },
  { id: 'E-07', text: 'No V8 flag is set while the process runs.' },
  {
    id: 'J-01',
    text: 'A request from a modern server to its client is answered with -32601.',
  },
  { id: 'J-02', text: 'A vendor notification is forwarded, or its loss is counted and logged.' },
  {
    id: 'J-03',
    text: 'If a modern HTTP server fails, the client gets an error within a single time limit, however often the gateway retries.',
  },
  {
    id: 'J-04',
    text: 'The mirrored parameters of a modern request are also compared with the body if the server is legacy.',
  },
  {
    id: 'J-05',
    text: "If a server's first answer is -32022 with 2026-07-28 in the list of its versions, the gateway sends the request again.",
  },
  {
    id: 'J-06',
    text: 'The messages of header_mismatch and unsupported_version name the header and the versions.',
  },
  { id: 'J-07', text: 'The reason for a cancellation is passed on unchanged.' },
  { id: 'J-08', text: 'If an upstream server refuses credentials, the client gets an error that reports the refusal.' },
  {
    id: 'J-09',
    text: 'TLS offers no CBC cipher suites. Every response has the nosniff header, and no response has the HSTS header, which would cover other services of the host.',
  },
  {
    id: 'U-01',
    text: 'Calls in flight in an abandoned session get outcome_unknown. A flapping network does not end a session that makes progress.',
  },
  {
    id: 'U-02',
    text: 'A call that is accepted while its owner is cut off from Redis ends with an answer or an error, never with an empty stream.',
  },
  {
    id: 'U-03',
    text: 'If a modern call requests input while Redis is unavailable, its error never claims that nothing reached the server.',
  },
  {
    id: 'U-04',
    text: 'A request has exactly one response. A client that resumes its stream gets the answer or history_lost, or 204 if it already had the answer.',
  },
  {
    id: 'U-05',
    text: 'If the session of a stream is gone, the SDKs are notified within the lease time plus 2 s.',
  },
  { id: 'U-06', text: 'A network partition does not delay any call by more than the lease time plus 2 s.' },
  {
    id: 'U-07',
    text: "A call that is posted right after the session's owner was killed goes to the next owner.",
  },
  {
    id: 'M-01',
    text: 'After a round of input, the results of resources/read and prompts/get have ttlMs and cacheScope.',
  },
  {
    id: 'M-02',
    text: 'subscriptions/listen without notifications gets -32602.',
  },
  {
    id: 'M-03',
    text: 'If a tool is unknown, a program that calls it through the SDK gets an error with the code -32601.',
  },
  { id: 'M-04', text: "The client's name reaches the server if the client has its own process." },
  {
    id: 'M-05',
    text: 'In both eras, authenticated users never share a server process unless the operator allows sharing.',
  },
  { id: 'M-06', text: 'An isolation option that does not apply to a server is refused.' },
  {
    id: 'P-01',
    text: 'If a server writes invalid output to stdout, the gateway logs the invalid output once for each session.',
  },
  {
    id: 'P-02',
    text: "If a server crashes, a gateway that runs in a terminal shows the last lines of the server's stderr.",
  },
  {
    id: 'P-03',
    text: 'URLs that are printed or offered for copying can be used as they are.',
  },
  { id: 'P-04', text: 'Plain HTTP on the TLS port gets an error message that names https://.' },
  { id: 'P-05', text: 'Refused keys cause a rate-limited log line with the reason.' },
  { id: 'P-06', text: 'The health check of the image works with TLS.' },
  { id: 'P-07', text: 'Compose works with every profile, and the load balancer forwards /ws.' },
];
