import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import type { OriginRules } from '../../core/auth/origin-rules.ts';
import type { ServerCertificate } from '../../core/http/http-server.ts';
import { displayHost } from './listen.ts';

/** The settings that decide which host name a client can use. */
export interface PublicBaseUrlOptions {
  /** The address on which the gateway listens. */
  readonly host: string;
  readonly port: number;
  readonly allowHost: readonly string[];
  /** The URL before all paths at which clients reach the gateway, if the operator knows it. */
  readonly publicUrl?: string | undefined;
  readonly rules: OriginRules;
  /** Undefined for plain HTTP. */
  readonly certificate: ServerCertificate | undefined;
}

/** The base of the printed URLs, and what a client on this machine needs to use it. */
export interface PublicBaseUrl {
  /** `http://127.0.0.1:8080` */
  readonly url: string;
  /** The file of a certificate that no authority has signed, which clients must be told to trust. */
  readonly ca: string | undefined;
  /** The base at which a proxy on this machine reaches the gateway; undefined if it is `url`. */
  readonly local?: string;
}

/**
 * The base of the URLs that are printed and offered for copying. The gateway accepts its host in the Host header. The
 * certificate is valid for that host, if there is such a name. A public URL has precedence: a proxy serves it.
 * @param certificatePath the file of the certificate
 */
export function publicBaseUrl(options: PublicBaseUrlOptions, certificatePath?: string): PublicBaseUrl {
  const { host, port, allowHost, publicUrl, rules, certificate } = options;
  const own = displayHost(host);
  const parsed = certificate && new X509Certificate(certificate.cert);
  const names = [own, 'localhost', ...allowHost.filter((name) => name !== '*'), ...dnsNamesOf(parsed)];
  // An entry of --allow-host can name a port, for example that of a proxy.
  const authorities = names.map((name) => (/:\d+$/.test(name) ? name : `${name}:${port}`));
  // localhost may resolve to another address than the one on which the gateway listens.
  const accepted = authorities.filter(
    (each) => rules.allowsHost(each) && (own === '127.0.0.1' || hostOf(each) !== 'localhost'),
  );
  const certified = accepted.find((each) => parsed === undefined || isValidFor(parsed, hostOf(each)));
  const authority = certified ?? accepted[0] ?? `${own}:${port}`;
  const local = `${parsed === undefined ? 'http' : 'https'}://${authority}`;
  if (publicUrl !== undefined && publicUrl !== local) return { url: publicUrl, ca: undefined, local };
  return { url: local, ca: parsed?.checkIssued(parsed) === true ? certificatePath : undefined };
}

/** The DNS names of a certificate that a URL can contain, without wildcards. */
const dnsNamesOf = (certificate: X509Certificate | undefined): string[] =>
  [...(certificate?.subjectAltName ?? '').matchAll(/DNS:([a-z0-9.-]+)(?:,|$)/gi)].map(([, name = '']) => name);

const hostOf = (authority: string): string => authority.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1');

const isValidFor = (certificate: X509Certificate, host: string): boolean =>
  (isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host)) !== undefined;
