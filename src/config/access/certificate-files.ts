import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import type { ServerCertificate } from '../../core/http/http-server.ts';
import type { IssueMessage } from '../issues.ts';
import type { GatewayOptions, OptionPath } from '../options/options.ts';
import { describeUnreadable } from '../sources/named-file.ts';

/** The files of the gateway's own certificate. */
export type CertificateFiles = Pick<GatewayOptions['listen']['tls'], 'cert' | 'key'>;

/** A usable certificate, or the option with the fault. */
export type CertificateRead =
  | { readonly ok: true; readonly certificate: ServerCertificate | undefined }
  | { readonly ok: false; readonly option: OptionPath; readonly message: IssueMessage };

const refused = (option: OptionPath, message: IssueMessage): CertificateRead => ({
  ok: false,
  option,
  message,
});

/**
 * Reads the certificate and its key, and checks that they match, so that a wrong pair is found before a client
 * connects.
 * @param readFile throws as `readFileSync` does
 */
export function readCertificate(
  { cert: certFile, key: keyFile }: CertificateFiles,
  readFile: (path: string) => string,
): CertificateRead {
  if (certFile === undefined && keyFile === undefined) return { ok: true, certificate: undefined };
  if (certFile === undefined)
    return refused(
      'listen.tls.key',
      (nameOf) => `needs ${nameOf('listen.tls.cert')}, the certificate of this key; set both`,
    );
  if (keyFile === undefined)
    return refused(
      'listen.tls.cert',
      (nameOf) => `needs ${nameOf('listen.tls.key')}, the key of this certificate; set both`,
    );
  const [cert, key] = [certFile, keyFile].map((path) => readText(path, readFile));
  if (cert?.fault !== undefined) return refused('listen.tls.cert', cert.fault);
  if (key?.fault !== undefined) return refused('listen.tls.key', key.fault);
  const leaf = certificateIn(cert?.text ?? '');
  if (leaf === undefined)
    return refused(
      'listen.tls.cert',
      'names a file without a PEM certificate, which begins with -----BEGIN CERTIFICATE-----; correct the path',
    );
  const privateKey = keyIn(key?.text ?? '');
  if (privateKey === 'encrypted')
    return refused(
      'listen.tls.key',
      "names an encrypted key; use a key without a passphrase that only the gateway's user can read",
    );
  if (privateKey === undefined)
    return refused(
      'listen.tls.key',
      'names a file without a PEM private key, which begins with -----BEGIN PRIVATE KEY-----; correct the path',
    );
  if (!leaf.checkPrivateKey(privateKey)) {
    return refused(
      'listen.tls.key',
      (nameOf) =>
        `does not match the first certificate of ${nameOf('listen.tls.cert')}, which must be the gateway's own`,
    );
  }
  const certificate = { cert: cert?.text ?? '', key: key?.text ?? '' };
  try {
    createSecureContext(certificate);
  } catch (cause) {
    return refused('listen.tls.cert', `cannot be used: ${(cause as Error).message}`);
  }
  return { ok: true, certificate };
}

function readText(path: string, readFile: (path: string) => string): { text: string; fault?: string } {
  try {
    return { text: readFile(path) };
  } catch (error) {
    return { text: '', fault: `names ${describeUnreadable(error, path)}` };
  }
}

function certificateIn(pem: string): X509Certificate | undefined {
  try {
    return new X509Certificate(pem);
  } catch {
    return undefined; // the message only needs the fact that this is not a certificate
  }
}

function keyIn(pem: string): KeyObject | 'encrypted' | undefined {
  if (pem.includes('ENCRYPTED')) return 'encrypted'; // RFC 7468, section 11, and the older "Proc-Type: 4,ENCRYPTED"
  try {
    return createPrivateKey(pem);
  } catch {
    return undefined; // as above: OpenSSL's message does not help the user
  }
}
