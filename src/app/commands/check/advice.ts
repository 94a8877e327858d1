import { isLoopback } from '../../../auth/origin-rules.ts';
import type { GatewayConfig, ServerConfig } from '../../../config/config.ts';
import { flagOf } from '../../../config/options/option-names.ts';
import { minute, second } from '../../../config/units.ts';
import { parseRedisUrl } from '../../../store/redis/connection/redis-url.ts';
import { exposureOf } from '../../access/exposure.ts';

/** A note for the operator about a valid configuration. */
export interface Advice {
  /** The option, or the name of the server. */
  readonly about: string;
  readonly text: string;
}

/** Most load balancers and proxies close a silent connection after this time. */
const proxyIdleMs = minute;

/** A client has usually forgotten a session that it has not used for this time. */
const longIdleMs = 24 * 60 * minute;

/** Advice on risks in a configuration. It names options and servers, never a value that may be secret. */
export const adviceOn = (config: GatewayConfig): readonly Advice[] => [
  ...onExposure(config),
  ...onTimes(config),
  ...onRedis(config),
  ...config.servers.flatMap((server) => onServer(server, config)),
];

function onExposure(config: GatewayConfig): Advice[] {
  const exposure = exposureOf(config);
  return [
    ...(exposure === undefined ? [] : [{ about: flagOf('listen.host'), text: `${exposure.what}. ${exposure.detail}` }]),
    ...(config.listen.allowedOrigins.includes('*')
      ? [
          {
            about: flagOf('listen.allowedOrigins'),
            text: 'With *, any web page that a user opens can use the servers from their browser. List the origins of your own pages.',
          },
        ]
      : []),
    ...(config.listen.allowedHosts.includes('*')
      ? [
          {
            about: flagOf('listen.allowedHosts'),
            text: 'With *, a web page can use its own host name to reach a gateway in the network of its visitor (DNS rebinding). List the host names that clients use.',
          },
        ]
      : []),
  ];
}

function onTimes({ sse: { heartbeatMs }, timeouts: { sessionIdleMs, connectionIdleMs } }: GatewayConfig): Advice[] {
  const advice: Advice[] = [];
  if (sessionIdleMs > longIdleMs)
    advice.push({
      about: flagOf('timeouts.sessionIdle'),
      text: 'Unused sessions keep their server process for more than a day. Choose a shorter time: clients open a new session automatically.',
    });
  if (heartbeatMs >= proxyIdleMs)
    advice.push({
      about: flagOf('sse.heartbeat'),
      text: 'Most proxies close a stream that is silent for 60 s. Choose a shorter time.',
    });
  if (connectionIdleMs <= proxyIdleMs)
    advice.push({
      about: flagOf('timeouts.connectionIdle'),
      text: 'Most proxies reuse a connection for up to 60 s, and answer 502 if the gateway closes it first. Choose a longer time.',
    });
  return advice;
}

function onRedis(config: GatewayConfig): Advice[] {
  const { redis, link } = config.cluster;
  if (redis === undefined && link.host !== 'local') {
    return [
      {
        about: flagOf('cluster.link.host'),
        text: `Without ${flagOf('cluster.redis')} there are no other instances to connect to.`,
      },
    ];
  }
  if (redis === undefined) return [];
  const { isTls, hosts } = parseRedisUrl(redis);
  const advice: Advice[] = [];
  if (!isTls && !hosts.every(({ host }) => isLoopback(host)))
    advice.push({
      about: flagOf('cluster.redis'),
      text: 'The connection to Redis is not encrypted: the Redis password and the contents of sessions can be read on the network. Use rediss:// unless the network is private.',
    });
  return advice;
}

function onServer({ name, share, probes, address }: ServerConfig, config: GatewayConfig): Advice[] {
  const advice: Advice[] = [];
  if (address === undefined && config.timeouts.graceMs + second > config.timeouts.drainMs)
    advice.push({
      about: name,
      text: `Requests in flight have no time to finish when the gateway shuts down. Make ${flagOf('timeouts.drain')} longer than ${flagOf('timeouts.grace')}.`,
    });
  if (share === 'all')
    advice.push({
      about: name,
      text: 'With --share all, all users share processes. Use this value only for a server that keeps no user data.',
    });
  if (probes.required && probes.everyMs === 0)
    advice.push({
      about: name,
      text: '--defaults.probes.required has no effect without --defaults.probes.every. Set both.',
    });
  return advice;
}
