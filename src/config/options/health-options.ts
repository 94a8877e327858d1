import { longestMs, second } from '../units.ts';
import { duration, integer, turnedOn } from './option-kinds.ts';

/** Options for the health probes of a server; a part of `serverOptions`. */
export const probeOptions = {
  probeEveryMs: duration(
    0,
    [0, longestMs],
    'Interval between probes of the server, for /readyz and metrics; 0 disables probes. Each probe of a legacy STDIO server starts a process.',
  ),
  probeTimeoutMs: duration(10 * second, [1, longestMs], 'Time limit for a server to start and answer a probe.'),
  probeFailures: integer(
    3,
    [1, 1_000],
    'Number of consecutive failed probes after which the server is considered down.',
  ),
  probeSuccesses: integer(
    2,
    [1, 1_000],
    'Number of consecutive successful probes after which the server is considered up again.',
  ),
  probeRequired: turnedOn(
    'Make /readyz return 503 while probes report this server as down. Use this option if an instance is useless without the server.',
  ),
} as const;
