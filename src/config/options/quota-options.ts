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
    'Maximum number of open sessions per user on an instance. With authentication, the default is a tenth of --max-sessions.',
  ),
  principalProcesses: optional(
    many,
    'Maximum number of STDIO server processes per user on an instance, including processes that are still exiting.',
  ),
  principalStartsPerMinute: optional(
    many,
    'Maximum number of server starts per user and minute on an instance. A burst of this size is possible.',
  ),
  principalStreams: optional(
    many,
    'Maximum number of open streams, unanswered requests and WebSockets per user on an instance.',
  ),
  principalRequestsPerS: optional(
    many,
    'Maximum number of requests per user and second, all instances together. Each message of a batch or a WebSocket counts.',
  ),
  principalRequestBurst: integer(
    50,
    many,
    'Number of requests that a user may send at once before --principal-requests-per-s applies.',
  ),
  principalBytes: optional(bytes, 'Maximum bytes of unanswered requests per user on an instance.'),
  maxStartsPerMinute: optional(
    many,
    'Maximum number of server starts for sessions per minute on an instance. A burst of this size is possible.',
  ),
  maxRequestsPerS: optional(
    many,
    'Maximum number of requests per second on an instance. A burst of this size is possible.',
  ),
  maxBytesInFlight: optional(bytes, 'Maximum bytes of unanswered requests on an instance.'),
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
      : [`Without authentication the gateway cannot tell users apart, so these options have no effect: ${flags}.`]),
    ...(hasBurstAlone
      ? [`${flagOf('principalRequestBurst')} has no effect without ${flagOf('principalRequestsPerS')}.`]
      : []),
  ];
}
