import { integer, optionalInteger, optionalSize } from './option-kinds.ts';
import { flagOf } from './option-names.ts';

const countBounds = [1, 1_000_000] as const;
const byteBounds = [1, Number.MAX_SAFE_INTEGER] as const;

/**
 * Options for the quotas of one principal and of the instance; a part of `globalOptions`. A principal is the user that
 * authentication finds. Without authentication, only the quotas of the instance apply.
 */
export const quotaOptions = {
  principalSessions: optionalInteger(
    countBounds,
    'Maximum number of open sessions per user on an instance. With authentication, the default is a tenth of --max-sessions.',
  ),
  principalProcesses: optionalInteger(
    countBounds,
    'Maximum number of STDIO server processes per user on an instance, including processes that are still exiting.',
  ),
  principalStartsPerMinute: optionalInteger(
    countBounds,
    'Maximum number of server starts per user per minute on an instance. All these starts may occur at once.',
  ),
  principalStreams: optionalInteger(
    countBounds,
    'Maximum number of open streams, unanswered requests and WebSockets per user on an instance.',
  ),
  principalRequestsPerS: optionalInteger(
    countBounds,
    'Maximum number of requests per user per second across all instances. Each message in a batch or on a WebSocket counts as one request.',
  ),
  principalRequestBurst: integer(
    50,
    countBounds,
    'Number of requests that a user may send at once before --limits.user.requestsPerSecond applies.',
  ),
  principalBytes: optionalSize(byteBounds, 'Maximum total bytes of unanswered requests per user on an instance.'),
  maxStartsPerMinute: optionalInteger(
    countBounds,
    'Maximum number of server starts for sessions per minute on an instance. All these starts may occur at once.',
  ),
  maxRequestsPerS: optionalInteger(
    countBounds,
    'Maximum number of requests per second on an instance. All these requests may arrive at once.',
  ),
  maxBytesInFlight: optionalSize(byteBounds, 'Maximum total bytes of unanswered requests on an instance.'),
} as const;

const principalOptions = [
  'principalSessions',
  'principalProcesses',
  'principalStartsPerMinute',
  'principalStreams',
  'principalRequestsPerS',
  'principalBytes',
] as const;

/**
 * Warnings about quotas without effect: quotas per user without authentication, and a burst without a rate.
 * @param isGiven true for an option that the configuration sets
 */
export function quotaWarnings(
  values: Readonly<Record<(typeof principalOptions)[number], number | undefined>>,
  isAuthenticated: boolean,
  isGiven: (key: string) => boolean,
): string[] {
  const given = principalOptions.filter((key) => values[key] !== undefined);
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
