import { readFileSync } from 'node:fs';
import { type CertificateFiles, readCertificate } from '../../config/access/certificate-files.ts';
import { renderIssueMessage } from '../../config/issues.ts';
import { flagOf } from '../../config/options/option-names.ts';
import type { ServerCertificate } from '../../http/http-server.ts';
import { watchFiles } from '../file-watch.ts';

/** The files of a certificate and the callbacks for their changes. */
export interface CertificateWatchOptions {
  readonly files: CertificateFiles;
  /** The certificate in use. */
  readonly current: ServerCertificate;
  onRenewed(certificate: ServerCertificate): void;
  /** The changed files cannot be used. One of the two may not have been replaced yet. */
  onRefused(message: string): void;
}

/** A watch over the files of a certificate that lasts until `stop`. */
export interface CertificateWatch {
  /** Checks the files at once. */
  check(): void;
  stop(): void;
}

/** Reads the certificate again whenever one of its files changes. */
export function watchCertificate({ files, current, onRenewed, onRefused }: CertificateWatchOptions): CertificateWatch {
  let known = current;
  const check = (): void => {
    const read = readCertificate(files, (path) => readFileSync(path, 'utf8'));
    if (!read.ok) return onRefused(`${flagOf(read.option)} ${renderIssueMessage(read.message, flagOf)}`);
    const { certificate } = read;
    if (certificate === undefined || (certificate.cert === known.cert && certificate.key === known.key)) return;
    known = certificate;
    onRenewed(certificate);
  };
  const watched = [files.tlsCert, files.tlsKey].filter((path) => path !== undefined);
  const { stop } = watchFiles(watched, check);
  return { check, stop };
}
