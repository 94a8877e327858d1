import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import type { GatewayConfig } from '../../config/config.ts';
import { environmentNameOf, flagOf } from '../../config/options/option-names.ts';
import type { OptionPath } from '../../config/options/options.ts';

/** Starts to listen and resolves with the port. Rejects with an error for the operator if that is impossible. */
export async function listen(
  server: Server,
  { host, port }: Pick<GatewayConfig['listen'], 'host' | 'port'>,
): Promise<number> {
  try {
    server.listen(port, host);
    await once(server, 'listening');
  } catch (cause) {
    throw new Error(explainListenFailure(cause, { host, port }, clientPort), { cause });
  }
  return (server.address() as AddressInfo).port;
}

/**
 * Rejects as `listen` would now. Accepts nobody: who connects in this moment is refused, as before the start. For what
 * takes long before the gateway listens.
 */
export async function tryAddress(address: Pick<GatewayConfig['listen'], 'host' | 'port'>): Promise<void> {
  const server = createServer((socket) => socket.destroy());
  await listen(server, address);
  await new Promise((resolve) => server.close(resolve));
}

/** The host part of a URL that a person can open. */
export function displayHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1';
  return host.includes(':') ? `[${host}]` : host;
}

/** The options of a port, and the meaning of port 0. */
export interface PortOptions {
  readonly host: OptionPath;
  readonly port: OptionPath;
  readonly zeroMeans: string;
}

/** The port for other instances. */
export const linkPort: PortOptions = {
  host: 'cluster.link.host',
  port: 'cluster.link.port',
  zeroMeans: 'selects any free port',
};

const clientPort: PortOptions = { host: 'listen.host', port: 'listen.port', zeroMeans: 'selects any free port' };

/** Explains to the operator why the gateway cannot listen at an address. */
export function explainListenFailure(
  cause: unknown,
  { host, port }: { readonly host: string; readonly port: number },
  options: PortOptions,
): string {
  const { code, message } = cause as NodeJS.ErrnoException;
  const portFlag = flagOf(options.port);
  if (code === 'EADDRINUSE')
    return `Port ${port} on ${host} is in use. Choose another port with ${portFlag} or ${environmentNameOf(options.port)}; 0 ${options.zeroMeans}.`;
  if (code === 'EACCES') return `This user may not open port ${port}. Choose a port above 1023 with ${portFlag}.`;
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND')
    return `The address ${host} does not belong to this machine. Correct ${flagOf(options.host)}.`;
  return `The gateway cannot listen on ${host}:${port}: ${message}`;
}
