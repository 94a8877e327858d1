import { integer, turnedOn } from './option-kinds.ts';
import { longestMs, second } from './units.ts';

/** Options that say how a server is probed; a part of `serverOptions`. */
export const probeOptions = {
  probeEveryMs: integer(
    0,
    [0, longestMs],
    'Milliseconds between probes of the server, for /readyz and metrics; 0 for none. Each of a STDIO server of the older revisions starts a process.',
  ),
  probeTimeoutMs: integer(
    10 * second,
    [1, longestMs],
    'Milliseconds that the server has to answer a question of a probe; its start counts, where there is one.',
  ),
  probeFailures: integer(3, [1, 1_000], 'Probes in a row without an answer after which the server counts as down.'),
  probeSuccesses: integer(2, [1, 1_000], 'Probes in a row with an answer after which it counts as up again.'),
  probeRequired: turnedOn(
    'Whether /readyz is 503 while the server is down by its probes: for instances that are of no use without it.',
  ),
} as const;
