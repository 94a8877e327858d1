import { once } from 'node:events';
import type { AddressInfo, Server } from 'node:net';
import type { GatewayConfig } from '../../config/config.ts';

/** Starts to listen and resolves with the port. Rejects with an error for the operator if that is impossible. */
export async function listen(server: Server, { host, port }: Pick<GatewayConfig, 'host' | 'port'>): Promise<number> {
  try {
    server.listen(port, host);
    await once(server, 'listening');
  } catch (cause) {
    throw new Error(explainListenFailure(cause, host, port), { cause });
  }
  return (server.address() as AddressInfo).port;
}

/** The host part of a URL that a person can open. */
export function displayHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1';
  return host.includes(':') ? `[${host}]` : host;
}

function explainListenFailure(cause: unknown, host: string, port: number): string {
  const code = (cause as NodeJS.ErrnoException).code;
  if (code === 'EADDRINUSE')
    return `Port ${port} on ${host} is in use. Choose another port with --port or GANGWAY_PORT; 0 selects any free port.`;
  if (code === 'EACCES') return `This user may not open port ${port}. Choose a port above 1023 with --port.`;
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND')
    return `The address ${host} does not belong to this machine. Correct --host.`;
  return `The gateway cannot listen on ${host}:${port}: ${(cause as Error).message}`;
}
