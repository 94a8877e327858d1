import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import type { UpstreamTls } from '../backend/upstream-tls.ts';
import type { GatewayConfig } from '../config/config.ts';
import { flagOf } from '../config/options/option-names.ts';
import type { OptionPath } from '../config/options/options.ts';
import type { ClientCertificates } from '../http/http-server.ts';

/** An option that names a file, and the path; undefined if the option is not set. */
type FileOption = readonly [option: OptionPath, path: string | undefined];

/** The options with the files for a TLS connection that the gateway opens. */
export interface TlsFileOptions {
  readonly ca: FileOption;
  readonly cert: FileOption;
  readonly key: FileOption;
}

/**
 * Reads the certificates for a TLS connection that the gateway opens. Throws an error for the operator if a file cannot
 * be used, so that the fault appears at the start and not with the first connection.
 */
export function readTlsFiles(options: TlsFileOptions): UpstreamTls {
  const ca = readAuthorities(options.ca);
  const cert = readFile(options.cert);
  const key = readFile(options.key);
  const tls = { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) };
  try {
    createSecureContext(tls);
  } catch (cause) {
    const flags = [options.ca, options.cert, options.key].map(([option]) => flagOf(option)).join(', ');
    throw new Error(`The files of ${flags} cannot be used: ${(cause as Error).message}`, { cause });
  }
  return tls;
}

/** Reads the certificates for Redis; throws as `readTlsFiles` does. */
export const readRedisTls = ({ cluster: { tls } }: Pick<GatewayConfig, 'cluster'>): UpstreamTls =>
  readTlsFiles({
    ca: ['cluster.tls.ca', tls.ca],
    cert: ['cluster.tls.cert', tls.cert],
    key: ['cluster.tls.key', tls.key],
  });

/** How client certificates are requested, with their authorities; throws as `readTlsFiles` does. */
export function readClientCertificates({ auth }: Pick<GatewayConfig, 'auth'>): ClientCertificates | undefined {
  const { clientCertificates } = auth.oauth;
  if (clientCertificates === undefined || clientCertificates === 'any') return clientCertificates && {};
  const option = 'auth.oauth.clientCertificates';
  const ca = readAuthorities([option, clientCertificates]);
  try {
    createSecureContext({ ca });
  } catch (cause) {
    throw new Error(`The file of ${flagOf(option)} cannot be used: ${(cause as Error).message}`, { cause });
  }
  return { ca };
}

function readAuthorities(option: FileOption): Buffer | undefined {
  const ca = readFile(option);
  // Node.js treats a file without a certificate as an empty list, with which it would trust nobody.
  if (ca !== undefined && !ca.includes('-----BEGIN'))
    throw new Error(`The file of ${flagOf(option[0])} contains no PEM certificate. Correct the option.`);
  return ca;
}

function readFile([option, path]: FileOption): Buffer | undefined {
  if (path === undefined) return undefined;
  try {
    return readFileSync(path);
  } catch (cause) {
    throw new Error(`The file of ${flagOf(option)} cannot be read: ${(cause as Error).message}`, { cause });
  }
}
