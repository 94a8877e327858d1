import type { Requirement } from './requirement.ts';

/**
 * The findings of the audit, the reviews and the foreign suites of November 2026. The letter names where a finding comes from:
 * `S` the security audit, `C` the review of the core, `E` the review of the edges, `J` foreign suites (their G1 to G9), `U` refusals
 * that were untrue under faults, `M` modern clients on legacy servers and sharing, `P` people in trouble.
 */
export const floor: readonly Requirement[] = [
  {
    id: 'S-01',
    text: 'One answer of a hostile server of the modern era at a URL ends no more than the call.',
  },
  {
    id: 'S-02',
    text: 'A response whose error is null is refused, and ends no probe, check or gateway.',
  },
  {
    id: 'S-03',
    text: 'A key that equals another one, or a known one, under simple case folding is refused on the levels that route a message.',
  },
  {
    id: 'S-04',
    text: 'With authentication, the admin port asks for a key on loopback too; without, for the code in its printed URL.',
  },
  {
    id: 'S-05',
    text: 'One nested value in a line of a server stalls nobody and fills no memory.',
  },
  {
    id: 'S-06',
    text: 'One request of 4 MiB stalls nobody: wide objects, long filters, values where names belong.',
  },
  {
    id: 'S-07',
    text: 'A task on a shared process belongs to the principal and the scopes that made it.',
  },
  {
    id: 'S-08',
    text: 'Keys in the environment of the gateway can be hashes; clear ones are warned of where servers can read them.',
  },
  { id: 'S-09', text: 'The texts of initialize and of its answer are bounded.' },
  { id: 'S-10', text: 'HEAD and unknown paths write nothing past the log.' },
  {
    id: 'S-11',
    text: 'A mirrored parameter is compared however many members stand beside it.',
  },
  { id: 'S-12', text: 'Only the exact path of an endpoint reaches it.' },
  {
    id: 'S-13',
    text: 'With authentication, one user cannot take all sessions or all places of clients that wait.',
  },
  { id: 'S-14', text: 'Refused strangers cannot flood log or audit.' },
  { id: 'S-15', text: 'What is shown of messages is read in linear time.' },
  {
    id: 'S-16',
    text: 'The lock file has the integrity of every package, and a release is signed where no development dependency runs.',
  },
  { id: 'S-17', text: 'A uri that is no string reaches no event.' },
  {
    id: 'S-18',
    text: 'What the documentation says of tokens, rebinding and tools beside Redis is safe to follow.',
  },
  {
    id: 'C-01',
    text: 'A takeover under way at SIGTERM yields no session that the drain does not see.',
  },
  {
    id: 'C-02',
    text: 'A request that waited for its scopes does not go on into a session that has ended.',
  },
  { id: 'C-03', text: 'What a server writes while its era is asked for is bounded.' },
  { id: 'C-04', text: 'The texts of initialize have a limit of their own.' },
  { id: 'C-05', text: 'No value of any size is built for a related task.' },
  {
    id: 'C-06',
    text: 'Denials of a lookup are bounded and forgotten, and take no session from a living owner.',
  },
  { id: 'C-07', text: 'Records of living sessions do not expire in the memory store.' },
  { id: 'C-08', text: 'No rejection is left to nobody.' },
  {
    id: 'C-09',
    text: 'What routing one line of a server throws ends its session alone.',
  },
  {
    id: 'C-10',
    text: 'A peer message that cannot be read is answered, and messages between instances have a version.',
  },
  {
    id: 'C-11',
    text: 'What is kept for other instances is bounded, and forgotten with them.',
  },
  { id: 'C-12', text: 'A fault of a listener is no loss of changes, and is logged.' },
  { id: 'C-13', text: 'A text is read again with the limits of whoever asks.' },
  { id: 'C-14', text: 'A lost call is sent again whole, progress of a client included.' },
  {
    id: 'C-15',
    text: 'Listeners of a forwarded request are removed with their attempt.',
  },
  { id: 'C-16', text: 'What changes with each GET is stored apart from what is large.' },
  { id: 'C-17', text: 'Scopes that a request uses are kept once they are stored.' },
  {
    id: 'C-18',
    text: "Timers are unref'd and end with what made them, and a guarded reply keeps its status.",
  },
  { id: 'E-01', text: 'A refused reload changes no health.' },
  { id: 'E-02', text: 'Audit lines on a pipe go on after one hiccup of its reader.' },
  { id: 'E-03', text: 'One throw in one request ends that request alone.' },
  { id: 'E-04', text: 'A reader of the log that stalls does not stall the gateway.' },
  { id: 'E-05', text: 'A flood of connections is no flood of log lines.' },
  { id: 'E-06', text: 'Remote administration has TLS, or a warning.' },
  { id: 'E-07', text: 'No V8 flag is set while the process runs.' },
  {
    id: 'J-01',
    text: 'A request that a modern server sends its client is answered with -32601.',
  },
  { id: 'J-02', text: 'A vendor notification passes, or is said not to.' },
  {
    id: 'J-03',
    text: 'A dead modern HTTP server is reported within one budget for a call.',
  },
  {
    id: 'J-04',
    text: 'Mirrored parameters of a modern request are compared at a legacy server, too.',
  },
  { id: 'J-05', text: 'A first answer -32022 that lists 2026-07-28 is tried again.' },
  {
    id: 'J-06',
    text: 'The messages of header_mismatch and unsupported_version name the header and the versions.',
  },
  { id: 'J-07', text: 'A reason for a cancellation arrives as it was sent.' },
  { id: 'J-08', text: "An upstream's refusal of credentials is told as one." },
  {
    id: 'J-09',
    text: 'TLS offers no CBC suite; nosniff and HSTS stand where they belong.',
  },
  {
    id: 'U-01',
    text: 'A call in flight when a session is given up has outcome_unknown, and a flapping network gives up no session that makes progress.',
  },
  {
    id: 'U-02',
    text: 'A call accepted while its owner is cut off from Redis ends in an answer or an error, never in an empty stream.',
  },
  {
    id: 'U-03',
    text: 'A modern call that asks for input while Redis is away never hears that nothing reached the server.',
  },
  {
    id: 'U-04',
    text: 'One request has one response, also for a resume: history_lost or the answer, and never 204 for an answer that was not had.',
  },
  {
    id: 'U-05',
    text: 'The SDKs hear of a stream whose session is gone within lease + 2 s.',
  },
  { id: 'U-06', text: 'A partition makes no call wait longer than lease + 2 s.' },
  {
    id: 'U-07',
    text: 'A call posted right after the owner was killed goes to the next owner.',
  },
  {
    id: 'M-01',
    text: 'resources/read and prompts/get after a round of input carry ttlMs and cacheScope.',
  },
  {
    id: 'M-02',
    text: 'subscriptions/listen without notifications is refused with -32602.',
  },
  {
    id: 'M-03',
    text: "An unknown tool's -32601 reaches the caller of the SDK as an error with that code.",
  },
  { id: 'M-04', text: "The client's name reaches a server whose process is its own." },
  {
    id: 'M-05',
    text: 'Where users are authenticated, they share no process of a server of any era unless the operator says so.',
  },
  { id: 'M-06', text: 'An isolation option that does not apply is refused.' },
  { id: 'P-01', text: 'Noise on stdout is told once, with its first line.' },
  {
    id: 'P-02',
    text: "A crash shows the last lines of the server's stderr in a terminal.",
  },
  {
    id: 'P-03',
    text: 'URLs that are printed or offered for copying work as they stand.',
  },
  { id: 'P-04', text: 'Plain HTTP on the TLS port is answered with a sentence.' },
  { id: 'P-05', text: 'Refused keys leave a rate-limited line with the reason.' },
  { id: 'P-06', text: 'The health check of the image works with TLS.' },
  { id: 'P-07', text: 'Compose works with every profile, and the balancer passes /ws.' },
];
