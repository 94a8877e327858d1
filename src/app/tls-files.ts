import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import type { GatewayConfig } from '../config/config.ts';
import { flagOf } from '../config/options/option-names.ts';
import type { OptionPath } from '../config/options/options.ts';
import type { UpstreamTls } from '../core/backend/upstream-tls.ts';
import type { ClientCertificates } from '../core/http/http-server.ts';

/**
 * Reads the certificates for a TLS connection that the gateway opens. Throws an error for the operator if a file cannot
 * be used, so that the fault appears at the start and not with the first connection.
 */
export function readTlsFiles(
  branch: 'tls' | 'cluster.tls',
  files: { readonly ca: string | undefined; readonly cert: string | undefined; readonly key: string | undefined },
): UpstreamTls {
  const ca = readAuthorities(`${branch}.ca`, files.ca);
  const cert = readFile(`${branch}.cert`, files.cert);
  const key = readFile(`${branch}.key`, files.key);
  const tls = { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) };
  try {
    createSecureContext(tls);
  } catch (cause) {
    const flags = (['ca', 'cert', 'key'] as const).map((name) => flagOf(`${branch}.${name}`)).join(', ');
    throw new Error(`The files of ${flags} cannot be used: ${(cause as Error).message}`, { cause });
  }
  return tls;
}

/** How client certificates are requested, with their authorities; throws as `readTlsFiles` does. */
export function readClientCertificates({ auth }: Pick<GatewayConfig, 'auth'>): ClientCertificates | undefined {
  const { clientCertificates } = auth.oauth;
  if (clientCertificates === undefined || clientCertificates === 'any') return clientCertificates && {};
  const option = 'auth.oauth.clientCertificates';
  const ca = readAuthorities(option, clientCertificates);
  try {
    createSecureContext({ ca });
  } catch (cause) {
    throw new Error(`The file of ${flagOf(option)} cannot be used: ${(cause as Error).message}`, { cause });
  }
  return { ca };
}

function readAuthorities(option: OptionPath, path: string | undefined): Buffer | undefined {
  const ca = readFile(option, path);
  // Node.js treats a file without a certificate as an empty list, with which it would trust nobody.
  if (ca !== undefined && !ca.includes('-----BEGIN'))
    throw new Error(`The file of ${flagOf(option)} contains no PEM certificate. Correct the option.`);
  return ca;
}

function readFile(option: OptionPath, path: string | undefined): Buffer | undefined {
  if (path === undefined) return undefined;
  try {
    return readFileSync(path);
  } catch (cause) {
    throw new Error(`The file of ${flagOf(option)} cannot be read: ${(cause as Error).message}`, { cause });
  }
}
