import { readFileSync } from 'node:fs';
import { type CertificateFiles, readCertificate } from '../../config/access/certificate-files.ts';
import { renderIssueMessage } from '../../config/issues.ts';
import { flagOf } from '../../config/options/option-names.ts';
import type { ServerCertificate } from '../../http/http-server.ts';
import { watchFiles } from '../file-watch.ts';

/** Who is told what came of files that changed. */
export interface CertificateWatchOptions {
  readonly files: CertificateFiles;
  /** What is in use. */
  readonly current: ServerCertificate;
  onRenewed(certificate: ServerCertificate): void;
  /** The files are not to be used, and why; perhaps the other one is still to come. */
  onRefused(message: string): void;
}

/** The files of a certificate, looked at for as long as the gateway runs. */
export interface CertificateWatch {
  /** Looks at once. */
  look(): void;
  stop(): void;
}

/** Reads the certificate again whenever one of its files has changed. */
export function watchCertificate({ files, current, onRenewed, onRefused }: CertificateWatchOptions): CertificateWatch {
  let known = current;
  const look = (): void => {
    const read = readCertificate(files, (path) => readFileSync(path, 'utf8'));
    if (!read.ok) return onRefused(`${flagOf(read.option)} ${renderIssueMessage(read.message, flagOf)}`);
    const { certificate } = read;
    if (certificate === undefined || (certificate.cert === known.cert && certificate.key === known.key)) return;
    known = certificate;
    onRenewed(certificate);
  };
  const watched = [files.tlsCert, files.tlsKey].filter((path) => path !== undefined);
  const { stop } = watchFiles(watched, look);
  return { look, stop };
}
