import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { onTestFinished } from 'vitest';
import type { UpstreamTls } from '../../../src/core/backend/upstream-tls.ts';

/** A throw-away authority, and a certificate of it for `localhost` and for clients. Fails where openssl is missing. */
export async function makeCertificates(): Promise<Required<UpstreamTls>> {
  const folder = mkdtempSync(join(tmpdir(), 'gangway-upstream-tls-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const openssl = (...args: string[]) => promisify(execFile)('openssl', args, { cwd: folder });
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  await openssl('req', '-x509', ...key, '-keyout', 'ca.key', '-out', 'ca.pem', '-days', '2', '-subj', '/CN=test ca');
  await openssl('req', ...key, '-keyout', 'key.pem', '-out', 'request.pem', '-subj', '/CN=localhost');
  const signed = ['-in', 'request.pem', '-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2'];
  await openssl('x509', '-req', ...signed, '-out', 'cert.pem');
  const read = (name: string) => readFileSync(join(folder, name));
  return { ca: read('ca.pem'), cert: read('cert.pem'), key: read('key.pem') };
}
