import type { GatewayConfig } from './configuration/config.ts';

/** An address that a person can open. */
export function displayHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1';
  return host.includes(':') ? `[${host}]` : host;
}

/** Why the gateway cannot listen there, and what to do: one sentence for the operator. */
export function explainListenFailure(cause: unknown, { host, port }: Pick<GatewayConfig, 'host' | 'port'>): string {
  const code = (cause as NodeJS.ErrnoException).code;
  if (code === 'EADDRINUSE')
    return `Port ${port} on ${host} is in use. Choose another one with --port or GANGWAY_PORT; 0 is any free one.`;
  if (code === 'EACCES') return `Port ${port} may not be opened by this user. Choose one above 1023 with --port.`;
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') return `${host} is no address of this machine. Correct --host.`;
  return `Cannot listen on ${host}:${port}: ${(cause as Error).message}`;
}
