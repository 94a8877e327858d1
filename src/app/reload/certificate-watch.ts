import { readFileSync } from 'node:fs';
import type { Logger } from 'pino';
import { type CertificateFiles, type CertificateRead, readCertificate } from '../../config/access/certificate-files.ts';
import { renderIssueMessage } from '../../config/issues.ts';
import { flagOf, namesAt } from '../../config/options/option-names.ts';
import type { ServerCertificate } from '../../core/http/http-server.ts';
import { warnOfExpiry } from '../access/exposure.ts';
import { watchFiles } from '../file-watch.ts';

/** The certificate in use, its files, and who wants each new one. */
export interface CertificateWatchOptions {
  readonly files: CertificateFiles;
  readonly current: ServerCertificate;
  readonly logger: Logger;
  renew(certificate: ServerCertificate): void;
}

/** A watch over the files of a certificate that lasts until `stop`. */
export interface CertificateWatch {
  /** Checks the files at once. */
  check(): void;
  stop(): void;
}

/** Reads a certificate. Throws an error for the operator if the files have become invalid since the configuration was read. */
export function readCertificateNow(files: CertificateFiles): ServerCertificate | undefined {
  const read = readFiles(files);
  if (!read.ok) throw new Error(`${explain(read)}.`);
  return read.certificate;
}

/** Reads the certificate again whenever one of its files changes. One of the two may not have been replaced yet. */
export function watchCertificate({ files, current, logger, renew }: CertificateWatchOptions): CertificateWatch {
  let known = current;
  const check = (): void => {
    const read = readFiles(files);
    if (!read.ok) {
      const detail = explain(read);
      logger.warn({ detail }, 'cannot use the changed certificate files; the previous certificate stays in use');
      return;
    }
    const { certificate } = read;
    if (certificate === undefined || (certificate.cert === known.cert && certificate.key === known.key)) return;
    known = certificate;
    renew(certificate);
    logger.info('new connections use the renewed certificate');
    warnOfExpiry(certificate, Date.now(), logger);
  };
  const watched = [files.cert, files.key].filter((path) => path !== undefined);
  const { stop } = watchFiles(watched, check);
  return { check, stop };
}

const readFiles = (files: CertificateFiles): CertificateRead =>
  readCertificate(files, (path) => readFileSync(path, 'utf8'));

const explain = ({ option, message }: Extract<CertificateRead, { readonly ok: false }>): string =>
  `${flagOf(option)} ${renderIssueMessage(message, namesAt('--', false))}`;
