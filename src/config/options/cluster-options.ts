import * as z from 'zod/mini';
import { parseRedisUrl } from '../../store/redis/connection/redis-url.ts';
import { largestTotalBytes, longestMs, mebibyte, minute, second } from '../units.ts';
import { duration, file, integer, list, matching, type Option, size, text } from './option-kinds.ts';

const redisUrl = z.string({ error: 'must be a URL' }).check(
  z.superRefine((url, context) => {
    try {
      parseRedisUrl(url);
    } catch (cause) {
      context.addIssue({ code: 'custom', message: (cause as Error).message });
    }
  }),
);

const storePlace = matching(
  /^(?:memory|file(?:-if-writable)?:[^\0]*[^\0/ ][^\0]*)$/,
  'must be memory, or file: followed by a directory, such as file:/var/lib/mcp-gangway',
);

/** Options for the store, and for the instances that share a Redis; a part of `globalOptions`. */
export const clusterOptions = {
  store: text(
    'memory',
    storePlace,
    'Where a gateway without Redis keeps its sessions: memory, or file:DIRECTORY. With a directory, sessions, streams and pending calls survive a restart. file-if-writable:DIRECTORY means memory if the directory is missing or cannot be written.',
  ),
  storeSyncMs: duration(
    second,
    [0, longestMs],
    'Maximum time before changes in the directory of the store are synced to the disk. A power failure can lose the changes of this time. If only the process ends, nothing is lost. With 0, a change counts as stored only when it is on the disk.',
  ),
  redis: text<string | undefined>(undefined, redisUrl, 'URL of the Redis server for all instances; also REDIS_URL.'),
  redisPrefix: text(
    'gangway',
    matching(/^[A-Za-z0-9._:-]{1,64}$/, 'must be 1 to 64 letters, digits and . _ : -'),
    'Prefix of all keys in Redis. Instances with the same prefix share their sessions.',
  ),
  redisCa: text<string | undefined>(undefined, file, 'File with the CA certificates (PEM) for a rediss:// server.'),
  redisCert: text<string | undefined>(
    undefined,
    file,
    'File with the client certificate (PEM) for a rediss:// server.',
  ),
  redisKey: text<string | undefined>(
    undefined,
    file,
    'File with the private key (PEM) of --advanced.cluster.redisCert.',
  ),
  redisTimeoutMs: duration(
    second,
    [10, longestMs],
    'Time limit for an answer from Redis. After this time, Redis is considered unreachable.',
  ),
  redisWaitMs: duration(
    5 * second,
    [1, longestMs],
    'Maximum time that a request waits for Redis before it gets 503. Such a request has not reached the server.',
  ),
  leaseMs: duration(
    6 * second,
    [100, longestMs],
    "Time without a lease renewal after which other instances take over an instance's sessions.",
  ),
  leaseRenewMs: duration(2 * second, [10, longestMs], 'Interval between the lease renewals of an instance.'),
  leaseMarginMs: duration(
    second,
    [1, longestMs],
    'Safety margin before a lease expires. Within this margin, the instance sends only data that is in the log.',
  ),
  recordTtlMs: duration(
    60 * minute,
    [1, longestMs],
    'Time for which Redis keeps a session without an owner. If it is not set, it is at least --session-idle.',
  ),
  mailboxMaxBytes: size(
    64 * mebibyte,
    [1, largestTotalBytes],
    'Maximum total bytes of messages from other instances that wait for one instance.',
  ),
  linkHost: text(
    'local',
    matching(/^[^\s/]+$/, 'must be local, none, an IP address or a host name'),
    'Address on which this instance accepts direct connections of other instances. local accepts only instances of the same user on this host. With none, messages between instances go through Redis.',
  ),
  linkPort: integer(0, [0, 65535], 'Port for direct connections of other instances. 0 selects any free port.'),
  linkAddress: text<string | undefined>(
    undefined,
    matching(/^[^\s/]+$/, 'must be a host, or host:port'),
    'Address at which other instances reach this instance, as host or host:port. The default is --cluster.link.host. If --cluster.link.host is a wildcard, the default is the first address of the machine.',
  ),
  stateKey: {
    ...list(
      matching(/^[^,\s]{32,}$/, 'must be at least 32 characters without commas and spaces'),
      'Secret that protects the requestState of modern clients; repeatable. Use the same secrets on all instances. The first secret encrypts new states. States that are encrypted with the other secrets remain valid. By default, the gateway generates a secret and shares it through Redis.',
    ),
  },
} as const satisfies Readonly<Record<string, Option>>;
