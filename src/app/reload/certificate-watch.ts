import { readFileSync } from 'node:fs';
import type { Logger } from 'pino';
import { type CertificateFiles, readCertificate } from '../../config/access/certificate-files.ts';
import { renderIssueMessage } from '../../config/issues.ts';
import { flagOf } from '../../config/options/option-names.ts';
import type { ServerCertificate } from '../../http/http-server.ts';
import { warnOfExpiry } from '../access/exposure.ts';
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

/** Reads a certificate. Throws an error for the operator if the files have become invalid since the configuration was read. */
export function readCertificateNow(files: CertificateFiles): ServerCertificate | undefined {
  const read = readCertificate(files, (path) => readFileSync(path, 'utf8'));
  if (!read.ok) throw new Error(`${flagOf(read.option)} ${renderIssueMessage(read.message, flagOf)}.`);
  return read.certificate;
}

/** Watches the files of the certificate in use, if there is one. `renew` is called for each new one. */
export function startCertificateWatch({
  current,
  files,
  renew,
  logger,
}: {
  readonly current: ServerCertificate | undefined;
  readonly files: CertificateFiles;
  readonly logger: Logger;
  renew(certificate: ServerCertificate): void;
}): CertificateWatch | undefined {
  if (current === undefined) return undefined;
  return watchCertificate({
    files,
    current,
    onRenewed(certificate) {
      renew(certificate);
      logger.info('new connections use the renewed certificate');
      warnOfExpiry(certificate, Date.now(), logger);
    },
    onRefused: (detail) =>
      logger.warn({ detail }, 'cannot use the changed certificate files; the previous certificate stays in use'),
  });
}
