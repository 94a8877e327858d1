import { advanced, integer, optionalInteger, optionalSize, size } from './option-kinds.ts';

const counts = [1, 1_000_000] as const;

/**
 * The branch `limits`. A user is the principal that authentication finds. Without authentication, only the limits of
 * the instance apply.
 */
export const limitOptions = {
  user: {
    sessions: optionalInteger(
      counts,
      'Maximum number of open sessions per user on an instance. With authentication, the default is a tenth of --max-sessions.',
    ),
    processes: advanced(
      optionalInteger(
        counts,
        'Maximum number of STDIO server processes per user on an instance, including processes that are still exiting.',
      ),
    ),
    startsPerMinute: advanced(
      optionalInteger(
        counts,
        'Maximum number of server starts per user per minute on an instance. All these starts may occur at once.',
      ),
    ),
    streams: advanced(
      optionalInteger(
        counts,
        'Maximum number of open streams, unanswered requests and WebSockets per user on an instance.',
      ),
    ),
    requestsPerSecond: optionalInteger(
      counts,
      'Maximum number of requests per user per second across all instances. A user may send ten seconds of this rate at once. Each message in a batch or on a WebSocket counts as one request.',
    ),
    inFlight: advanced(
      optionalSize(
        'Maximum total bytes of unanswered requests per user on an instance. With authentication, the default is half of --limits.total.inFlight.',
      ),
    ),
  },
  session: {
    requests: integer(256, [1, 100_000], 'Maximum number of requests in flight per session.'),
  },
  request: {
    body: size('4MiB', '256MiB', 'Maximum size of a request body.'),
  },
  total: {
    sessions: integer(1000, counts, 'Maximum number of open sessions.', { short: '--max-sessions' }),
    startsPerMinute: advanced(
      optionalInteger(
        counts,
        'Maximum number of server starts for sessions per minute on an instance. All these starts may occur at once.',
      ),
    ),
    inFlight: advanced(
      optionalSize(
        'Maximum total bytes of unanswered requests on an instance, and of messages that wait for servers. The default is 128MiB, or four times --limits.request.body if that is more. Requests of more than 16KiB use at most three quarters.',
      ),
    ),
  },
};
