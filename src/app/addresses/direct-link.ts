import { networkInterfaces } from 'node:os';
import type { DirectLinkOptions } from '../../cluster/cluster.ts';
import type { GatewayConfig } from '../../config/config.ts';
import type { StateKeys } from '../../era/keys/state-keys.ts';

type LinkConfig = Pick<GatewayConfig, 'linkHost' | 'linkPort' | 'linkAddress'>;

/** Returns how other instances reach this one directly; undefined if the operator has not chosen an address for that. */
export function directLinkOf(config: LinkConfig, secrets: StateKeys): DirectLinkOptions | undefined {
  const { linkHost: host, linkPort: port } = config;
  const advertised = advertisedLink(config);
  if (host === undefined || advertised === undefined) return undefined;
  return { secrets, address: { host, port, advertised } };
}

/** The address that other instances connect to, with a port if the operator has chosen one. */
export function advertisedLink({ linkHost, linkPort, linkAddress }: LinkConfig): string | undefined {
  if (linkHost === undefined) return undefined;
  const isWildcard = linkHost === '0.0.0.0' || linkHost === '::';
  const address = bracketed(linkAddress ?? (isWildcard ? firstAddress() : linkHost));
  return linkPort === 0 || hasPort.test(address) ? address : `${address}:${linkPort}`;
}

const hasPort = /:\d+$/;

/** The first address of the machine that other machines may reach. */
function firstAddress(): string {
  const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  const external = addresses.filter(({ internal }) => !internal);
  return (external.find(({ family }) => family === 'IPv4') ?? external[0])?.address ?? '127.0.0.1';
}

/** An IPv6 address in brackets, so that a port can follow it. */
const bracketed = (address: string): string => (/^[^[]*:.*:/.test(address) ? `[${address}]` : address);
