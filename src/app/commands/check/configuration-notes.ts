import { X509Certificate } from 'node:crypto';
import type { GatewayConfig } from '../../../config/config.ts';
import { flagOf } from '../../../config/options/option-names.ts';
import { expiryOf } from '../../access/exposure.ts';
import { readCertificateNow } from '../../reload/certificate-watch.ts';
import { type Advice, adviceOn } from './advice.ts';

/** A valid configuration, and what was found while it was read. */
export interface CheckedConfiguration {
  readonly config: GatewayConfig;
  /** The warnings from reading the configuration. */
  readonly warnings: readonly string[];
  /** The names of the servers that the file disables. */
  readonly disabled: readonly string[];
}

/** All notes on a configuration, before any server is tested. */
export const notesOn = ({ config, warnings, disabled }: CheckedConfiguration): readonly Advice[] => [
  ...warnings.map((text) => ({ about: 'configuration', text })),
  ...disabled.map((about) => ({ about, text: 'The file disables this server, so the gateway ignores it.' })),
  ...adviceOn(config),
  ...onCertificate(config),
];

function onCertificate(config: GatewayConfig): Advice[] {
  const certificate = readCertificateNow(config.listen.tls);
  const expiry = certificate && expiryOf(new X509Certificate(certificate.cert), Date.now());
  return expiry === undefined ? [] : [{ about: flagOf('listen.tls.cert'), text: `${expiry.what}. ${expiry.detail}` }];
}
