import { X509Certificate } from 'node:crypto';
import type { GatewayConfig, ServerConfig } from '../../../config/config.ts';
import { flagOf } from '../../../config/options/option-names.ts';
import { parseRedisUrl } from '../../../config/redis-url.ts';
import { minute, second } from '../../../config/units.ts';
import { isLoopback } from '../../../core/auth/origin-rules.ts';
import { expiryOf, exposureOf } from '../../access/exposure.ts';
import { readCertificateNow } from '../../reload/certificate-watch.ts';

/** A note for the operator about a valid configuration. */
export interface Advice {
  /** The option, or the name of the server. */
  readonly about: string;
  readonly text: string;
}

/** A valid configuration, and what was found while it was read. */
export interface CheckedConfiguration {
  readonly config: GatewayConfig;
  /** The warnings from reading the configuration. */
  readonly warnings: readonly string[];
  /** The names of the servers that the file disables. */
  readonly disabled: readonly string[];
}

/** All notes on a configuration, before any server is tested. */
export const notesOn = ({ config, warnings, disabled }: CheckedConfiguration): readonly Advice[] => [
  ...warnings.map((text) => ({ about: 'configuration', text })),
  ...disabled.map((about) => ({ about, text: 'The file disables this server, so the gateway ignores it.' })),
  ...adviceOn(config),
  ...onCertificate(config),
];

function onCertificate(config: GatewayConfig): Advice[] {
  const certificate = readCertificateNow(config.listen.tls);
  const expiry = certificate && expiryOf(new X509Certificate(certificate.cert), Date.now());
  return expiry === undefined ? [] : [{ about: flagOf('listen.tls.cert'), text: `${expiry.what}. ${expiry.detail}` }];
}

/** Most load balancers and proxies close a silent connection after this time. */
const proxyIdleMs = minute;

/** A client has usually forgotten a session that it has not used for this time. */
const longIdleMs = 24 * 60 * minute;

/** Advice on risks in a configuration. It names options and servers, never a value that may be secret. */
export const adviceOn = (config: GatewayConfig): readonly Advice[] => [
  ...advise(onGateway(config)),
  ...config.servers.flatMap((server) => advise(onServer(server, config))),
];

/** When advice is due, and the advice. */
export type AdviceRow = readonly [isDue: boolean, about: string, text: string];

/** The advice that is due. */
export const advise = (rows: readonly AdviceRow[]): Advice[] =>
  rows.filter(([isDue]) => isDue).map(([, about, text]) => ({ about, text }));

function onGateway(config: GatewayConfig): readonly AdviceRow[] {
  const { listen, sse, timeouts, cluster } = config;
  const exposure = exposureOf(config);
  const redis = cluster.redis === undefined ? undefined : parseRedisUrl(cluster.redis);
  return [
    [exposure !== undefined, flagOf('listen.host'), `${exposure?.what}. ${exposure?.detail}`],
    [
      listen.allowedOrigins.includes('*'),
      flagOf('listen.allowedOrigins'),
      'With *, any web page that a user opens can use the servers from their browser. List the origins of your own pages.',
    ],
    [
      listen.allowedHosts.includes('*'),
      flagOf('listen.allowedHosts'),
      'With *, a web page can use its own host name to reach a gateway in the network of its visitor (DNS rebinding). List the host names that clients use.',
    ],
    [
      timeouts.sessionIdleMs > longIdleMs,
      flagOf('timeouts.sessionIdle'),
      'Unused sessions keep their server process for more than a day. Choose a shorter time: clients open a new session automatically.',
    ],
    [
      sse.heartbeatMs >= proxyIdleMs,
      flagOf('sse.heartbeat'),
      'Most proxies close a stream that is silent for 60 s. Choose a shorter time.',
    ],
    [
      timeouts.connectionIdleMs <= proxyIdleMs,
      flagOf('timeouts.connectionIdle'),
      'Most proxies reuse a connection for up to 60 s, and answer 502 if the gateway closes it first. Choose a longer time.',
    ],
    [
      redis === undefined && cluster.link.host !== 'local',
      flagOf('cluster.link.host'),
      `Without ${flagOf('cluster.redis')} there are no other instances to connect to.`,
    ],
    [
      redis !== undefined && !redis.isTls && !redis.hosts.every(({ host }) => isLoopback(host)),
      flagOf('cluster.redis'),
      'The connection to Redis is not encrypted: the Redis password and the contents of sessions can be read on the network. Use rediss:// unless the network is private.',
    ],
  ];
}

const onServer = (
  { name, share, probes, address }: ServerConfig,
  { timeouts }: GatewayConfig,
): readonly AdviceRow[] => [
  [
    address === undefined && timeouts.graceMs + second > timeouts.drainMs,
    name,
    `Requests in flight have no time to finish when the gateway shuts down. Make ${flagOf('timeouts.drain')} longer than ${flagOf('timeouts.grace')}.`,
  ],
  [
    share === 'all',
    name,
    'With --share all, all users share processes. Use this value only for a server that keeps no user data.',
  ],
  [
    probes.required && probes.everyMs === 0,
    name,
    '--defaults.probes.required has no effect without --defaults.probes.every. Set both.',
  ],
];
