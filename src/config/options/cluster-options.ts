import * as z from 'zod/mini';
import { parseRedisUrl } from '../redis-url.ts';
import { advanced, duration, fileOption, integer, list, matching, optionalText, text } from './option-kinds.ts';

const redisUrl = z.string({ error: 'must be a URL' }).check(
  z.superRefine((url, context) => {
    try {
      parseRedisUrl(url);
    } catch (cause) {
      context.addIssue({ code: 'custom', message: (cause as Error).message });
    }
  }),
);

/** The branch `cluster`: the instances that share a Redis. */
export const clusterOptions = {
  redis: optionalText(redisUrl, 'URL of the Redis server for all instances; also REDIS_URL.', {
    short: '--redis',
    otherFlags: ['--redis-url'],
    pattern: '^rediss?(\\+(sentinel|cluster))?://[^?#]+$',
    secrets: 'url',
  }),
  prefix: text(
    'gangway',
    matching(/^[A-Za-z0-9._:-]{1,64}$/, 'must be 1 to 64 letters, digits and . _ : -'),
    'Prefix of all keys in Redis. Instances with the same prefix share their sessions.',
  ),
  tls: {
    ca: fileOption('File with the CA certificates (PEM) for a rediss:// server.'),
    cert: fileOption('File with the client certificate (PEM) for a rediss:// server.'),
    key: fileOption('File with the private key (PEM) of --cluster.tls.cert.'),
  },
  lease: duration(
    '6s',
    "Time without a lease renewal after which other instances take over an instance's sessions. Also the maximum time that a request waits for Redis before it gets 503; such a request has not reached the server.",
    {
      min: '100ms',
    },
  ),
  link: {
    host: text(
      'local',
      matching(/^(?!none$)[^\s/]+$/, 'must be local, an IP address or a host name'),
      'Address on which this instance accepts requests of other instances. Instances must reach each other. local accepts only instances of the same user on this host.',
    ),
    port: integer(0, [0, 65535], 'Port for requests of other instances. 0 selects any free port.'),
    address: advanced(
      optionalText(
        matching(/^[^\s/]+$/, 'must be a host, or host:port'),
        'Address at which other instances reach this instance, as host or host:port. The default is --cluster.link.host. If --cluster.link.host is a wildcard, the default is the first address of the machine.',
      ),
    ),
  },
  stateKeys: list(
    matching(/^[^,\s]{32,}$/, 'must be at least 32 characters without commas and spaces'),
    'Secret that protects the requestState of modern clients; repeatable. Use the same secrets on all instances. The first secret encrypts new states. States that are encrypted with the other secrets remain valid. By default, the gateway generates a secret and shares it through Redis.',
    { secrets: 'texts' },
  ),
};
