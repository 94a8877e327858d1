import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** Files of a self-signed certificate, for 127.0.0.1 unless other names are given. */
export interface ServerCertificate {
  readonly cert: string;
  readonly key: string;
  /** The certificate in PEM, to check the server against. */
  readonly ca: Buffer;
}

/** Creates certificates in a folder of their own; `remove` deletes it. Fails without openssl. */
export function certificateFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'gangway-tls-'));
  const openssl = (...args: string[]) => promisify(execFile)('openssl', args, { cwd: folder });
  return {
    path: (name: string) => join(folder, name),
    async make(name: string, alternativeNames = 'IP:127.0.0.1'): Promise<ServerCertificate> {
      const [cert, key] = [join(folder, `${name}.pem`), join(folder, `${name}.key`)];
      const subject = ['-subj', `/CN=${name}`, '-addext', `subjectAltName=${alternativeNames}`, '-days', '2'];
      const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
      await openssl('req', '-x509', ...kind, '-keyout', key, '-out', cert, ...subject);
      return { cert, key, ca: readFileSync(cert) };
    },
    async encryptKey(key: string, to: string): Promise<string> {
      await openssl('pkey', '-in', key, '-aes256', '-passout', 'pass:secret', '-out', join(folder, to));
      return join(folder, to);
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
