import { isLoopback } from '../http/origin.ts';
import { parseRedisUrl } from '../store/redis/redis-url.ts';
import type { GatewayConfig, ServerConfig } from './configuration/config.ts';
import { flagOf } from './configuration/option-names.ts';
import { minute, second } from './configuration/units.ts';
import { exposureOf } from './exposure.ts';

/** What an operator should know of a configuration that works. */
export interface Advice {
  /** The option, or the name of the server. */
  readonly about: string;
  readonly text: string;
}

/** Load balancers and proxies mostly close a silent connection after this. */
const proxyIdleMs = minute;

/** A server process that nobody has used for longer is mostly one that its client has forgotten. */
const longIdleMs = 24 * 60 * minute;

/** What should be thought about in a configuration. Names options and servers, never a value that may be secret. */
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
            text: 'With * every web page that a user opens can use the servers from his browser. Name the origins of your own pages.',
          },
        ]
      : []),
    ...(config.allowHost.includes('*')
      ? [
          {
            about: flagOf('allowHost'),
            text: 'With * nothing is checked: a web page can reach a gateway in the network of its visitor under a name of its own (DNS rebinding). Name those that clients use.',
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
      text: 'Sessions that nobody uses keep their server process for more than a day. Clients open a new one by themselves when theirs has ended.',
    });
  if (keepAliveMs >= proxyIdleMs)
    advice.push({
      about: flagOf('keepAliveMs'),
      text: 'Most proxies close a stream that is silent for 60 s. Keep it below that.',
    });
  if (connectionIdleMs <= proxyIdleMs)
    advice.push({
      about: flagOf('connectionIdleMs'),
      text: 'Most proxies use a connection again for 60 s, and answer 502 where it was closed under their hands. Keep it above that.',
    });
  return advice;
}

function onRedis({ redis, redisTimeoutMs, leaseMs, leaseMarginMs, leaseRenewMs }: GatewayConfig): Advice[] {
  if (redis === undefined) return [];
  const { isTls, hosts } = parseRedisUrl(redis);
  const advice: Advice[] = [];
  if (!isTls && !hosts.every(({ host }) => isLoopback(host)))
    advice.push({
      about: flagOf('redis'),
      text: 'Its password and what sessions say can be read on the network. Use rediss:// where that is not a network of your own.',
    });
  if (leaseRenewMs + redisTimeoutMs + leaseMarginMs > leaseMs)
    advice.push({
      about: flagOf('leaseMs'),
      text: `One slow answer of Redis is enough to stop this instance for a while. Keep it above ${flagOf('leaseRenewMs')}, ${flagOf('redisTimeoutMs')} and ${flagOf('leaseMarginMs')} together.`,
    });
  return advice;
}

function onServer(
  { name, isolation, probeRequired, probeEveryMs, ...server }: ServerConfig,
  config: GatewayConfig,
): Advice[] {
  const advice: Advice[] = [];
  const endMs = server.stdinCloseGraceMs + server.terminateGraceMs;
  if (server.address === undefined && endMs + second > config.drainMs)
    advice.push({
      about: name,
      text: `Its calls get no time when the gateway ends: ${flagOf('stdinCloseGraceMs')} and ${flagOf('terminateGraceMs')} are as long as ${flagOf('drainMs')}.`,
    });
  if (isolation === 'shared')
    advice.push({
      about: name,
      text: 'With --isolation shared all clients have one process, whoever they are: only for a server that keeps nothing of them. Sessions of a legacy server have their own all the same.',
    });
  if (probeRequired && probeEveryMs === 0)
    advice.push({
      about: name,
      text: 'Without --probe-every-ms nobody probes it, and --probe-required has no effect.',
    });
  return advice;
}
