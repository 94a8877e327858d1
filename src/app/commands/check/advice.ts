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
    ...(exposure === undefined ? [] : [{ about: flagOf('host'), text: `${exposure.what}. ${exposure.detail}` }]),
    ...(config.allowOrigin.includes('*')
      ? [
          {
            about: flagOf('allowOrigin'),
            text: 'With *, any web page that a user opens can use the servers from their browser. List the origins of your own pages.',
          },
        ]
      : []),
    ...(config.allowHost.includes('*')
      ? [
          {
            about: flagOf('allowHost'),
            text: 'With *, a web page can use its own host name to reach a gateway in the network of its visitor (DNS rebinding). List the host names that clients use.',
          },
        ]
      : []),
  ];
}

function onTimes({ sessionIdleMs, keepAliveMs, connectionIdleMs }: GatewayConfig): Advice[] {
  const advice: Advice[] = [];
  if (sessionIdleMs > longIdleMs)
    advice.push({
      about: flagOf('sessionIdleMs'),
      text: 'Unused sessions keep their server process for more than a day. Choose a shorter time: clients open a new session automatically.',
    });
  if (keepAliveMs >= proxyIdleMs)
    advice.push({
      about: flagOf('keepAliveMs'),
      text: 'Most proxies close a stream that is silent for 60 s. Choose a shorter time.',
    });
  if (connectionIdleMs <= proxyIdleMs)
    advice.push({
      about: flagOf('connectionIdleMs'),
      text: 'Most proxies reuse a connection for up to 60 s, and answer 502 if the gateway closes it first. Choose a longer time.',
    });
  return advice;
}

function onRedis(config: GatewayConfig): Advice[] {
  const { redis, redisTimeoutMs, leaseMs, leaseMarginMs, leaseRenewMs, linkHost } = config;
  if (redis === undefined && linkHost !== 'local') {
    return [
      { about: flagOf('linkHost'), text: `Without ${flagOf('redis')} there are no other instances to connect to.` },
    ];
  }
  if (redis === undefined) return [];
  const { isTls, hosts } = parseRedisUrl(redis);
  const advice: Advice[] = [];
  if (!isTls && !hosts.every(({ host }) => isLoopback(host)))
    advice.push({
      about: flagOf('redis'),
      text: 'The connection to Redis is not encrypted: the Redis password and the contents of sessions can be read on the network. Use rediss:// unless the network is private.',
    });
  if (leaseRenewMs + redisTimeoutMs + leaseMarginMs > leaseMs)
    advice.push({
      about: flagOf('leaseMs'),
      text: `A single slow answer from Redis can make this instance pause. Choose more than the sum of ${flagOf('leaseRenewMs')}, ${flagOf('redisTimeoutMs')} and ${flagOf('leaseMarginMs')}.`,
    });
  return advice;
}

function onServer(
  { name, share, probeRequired, probeEveryMs, ...server }: ServerConfig,
  config: GatewayConfig,
): Advice[] {
  const advice: Advice[] = [];
  const endMs = server.stdinCloseGraceMs + server.terminateGraceMs;
  if (server.address === undefined && endMs + second > config.drainMs)
    advice.push({
      about: name,
      text: `Requests in flight have no time to finish when the gateway shuts down. Make ${flagOf('drainMs')} longer than the sum of ${flagOf('stdinCloseGraceMs')} and ${flagOf('terminateGraceMs')}.`,
    });
  if (share === 'all')
    advice.push({
      about: name,
      text: 'With --share all, all users share processes. Use this value only for a server that keeps no user data.',
    });
  if (probeRequired && probeEveryMs === 0)
    advice.push({
      about: name,
      text: '--defaults.probes.required has no effect without --defaults.probes.every. Set both.',
    });
  return advice;
}
