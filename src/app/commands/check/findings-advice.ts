import type { ServerConfig } from '../../../config/config.ts';
import { flagOf } from '../../../config/options/option-names.ts';
import type { RedisFindings } from '../../features/stores.ts';
import { type Advice, advise } from './advice.ts';
import type { Findings } from './examine-server.ts';
import { refusedNamesAdvice } from './name-advice.ts';
import { adviceOnFilters, type FilteredItems, namedItems } from './unused-filters.ts';

/** A longer answer time noticeably delays each call that streams. */
const slowRedisMs = 10;

/** Advice on a server that works. */
export function adviceOnServer(
  server: ServerConfig,
  { warnings = [], noise, declares, lists, items }: Findings & { readonly items?: FilteredItems },
): Advice[] {
  const { name: about, hibernateAfterMs } = server;
  const texts = [...warnings, noise && noiseAdvice(noise), refusedNamesAdvice(lists.tools)];
  return [
    ...texts.flatMap((text) => (text === undefined ? [] : [{ about, text }])),
    ...(items === undefined ? [] : adviceOnFilters(about, server, items)),
    ...advise([
      [
        hibernateAfterMs > 0 && declares.includes('tasks'),
        about,
        `The server declares tasks and keeps their results in its process. With ${flagOf('hibernateAfter')}, results are lost when the session hibernates.`,
      ],
    ]),
  ];
}

/**
 * Notes what a view's filter does not match. The names of a view are those that its servers show, with their prefixes.
 * @param found the findings about the servers that work
 */
export function adviceOnViewFilters(view: ServerConfig, found: ReadonlyMap<string, Findings>): Advice[] {
  if (view.address?.transport !== 'view' || !view.address.members.every(({ name }) => found.has(name))) return [];
  const { members } = view.address;
  const namesOf = (kind: 'tools' | 'prompts') =>
    namedItems(
      members.flatMap(({ name, prefix }) => (found.get(name)?.lists[kind] ?? []).map((own) => `${prefix}${own}`)),
    );
  return adviceOnFilters(view.name, view, { tools: namesOf('tools'), prompts: namesOf('prompts') }, false);
}

const noiseAdvice = (line: string): string =>
  `The server writes lines to stdout that are not MCP messages, and the gateway drops them. The first line: ${JSON.stringify(line)}. Configure the server to log to stderr.`;

/** Advice on instances that are not reached. */
export const adviceOnInstances = (unreachable: readonly string[]): Advice[] =>
  unreachable.map((address) => ({
    about: flagOf('cluster.link.host'),
    text: `A running instance cannot be reached from here at ${address}. Instances must reach each other. Check ${flagOf('cluster.link.host')} and ${flagOf('cluster.link.address')} there, and that no firewall or network policy is between the two.`,
  }));

/** Advice on a Redis that works. */
export const adviceOnRedis = ({ memoryPolicy, latencyMs, addresses, version }: RedisFindings): Advice[] =>
  advise([
    [
      version === undefined,
      flagOf('cluster.redis'),
      'The Redis user is not allowed to run INFO, so the version and the eviction policy are unknown. Allow INFO to check them.',
    ],
    [
      memoryPolicy !== undefined && memoryPolicy !== 'noeviction',
      flagOf('cluster.redis'),
      `Redis may evict sessions when its memory is full (maxmemory-policy ${memoryPolicy}). With maxmemory-policy noeviction, the gateway waits instead. Set this policy.`,
    ],
    [
      latencyMs > slowRedisMs,
      flagOf('cluster.redis'),
      `Redis takes ${latencyMs} ms to answer, which delays each event of a stream. Move Redis closer to the gateway.`,
    ],
    [
      addresses.length > 0,
      flagOf('cluster.prefix'),
      `${addresses.length} running ${addresses.length === 1 ? 'instance uses' : 'instances use'} this prefix and share sessions with this gateway. This is right for instances with the same configuration. Give other gateways different prefixes.`,
    ],
  ]);
