import { integer, optional } from './option-kinds.ts';
import { flagOf } from './option-names.ts';

const many = [1, 1_000_000] as const;
const bytes = [1, Number.MAX_SAFE_INTEGER] as const;

/**
 * Options that say what one principal may have in use, and all together; a part of `globalOptions`. A principal is who
 * authentication says that a client is: without it there are none, and only what is for all counts.
 */
export const quotaOptions = {
  principalSessions: optional(
    many,
    'Sessions of one user open at once on an instance; with authentication a tenth of --max-sessions if this is not given.',
  ),
  principalProcesses: optional(
    many,
    'Processes of STDIO servers of one user on an instance, those that are still ending too.',
  ),
  principalStartsPerMinute: optional(
    many,
    'Starts of processes for one user in a minute on an instance: so many at once, and then at that rate.',
  ),
  principalStreams: optional(
    many,
    'Streams, unanswered requests and WebSockets of one user open at once on an instance.',
  ),
  principalRequestsPerS: optional(
    many,
    'Requests of one user in a second, all instances together; each message on a WebSocket or in a batch is one.',
  ),
  principalRequestBurst: integer(50, many, 'Requests that one user may send at once, and then at that rate.'),
  principalBytes: optional(bytes, 'Bytes of unanswered requests of one user on an instance.'),
  maxStartsPerMinute: optional(
    many,
    'Starts of processes for sessions in a minute on an instance: so many at once, and then at that rate.',
  ),
  maxRequestsPerS: optional(many, 'Requests in a second on an instance: so many at once, and then at that rate.'),
  maxBytesInFlight: optional(bytes, 'Bytes of unanswered requests on an instance.'),
} as const;

const ofPrincipals = [
  ...(['principalSessions', 'principalProcesses', 'principalStartsPerMinute', 'principalStreams'] as const),
  ...(['principalRequestsPerS', 'principalBytes'] as const),
];

/**
 * What is said of quotas and has no effect: of principals where nobody knows who is who, and of a rate that is not there.
 * @param isGiven true for an option that somebody has set
 */
export function quotaWarnings(
  values: Readonly<Record<(typeof ofPrincipals)[number], number | undefined>>,
  isAuthenticated: boolean,
  isGiven: (key: string) => boolean,
): string[] {
  const given = ofPrincipals.filter((key) => values[key] !== undefined);
  const flags = given.map(flagOf).join(', ');
  const hasBurstAlone = isGiven('principalRequestBurst') && values.principalRequestsPerS === undefined;
  return [
    ...(isAuthenticated || given.length === 0
      ? []
      : [`No effect without authentication, as nobody knows which clients are one user: ${flags}.`]),
    ...(hasBurstAlone
      ? [`No effect without ${flagOf('principalRequestsPerS')}: ${flagOf('principalRequestBurst')}.`]
      : []),
  ];
}
