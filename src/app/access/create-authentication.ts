import { readFileSync } from 'node:fs';
import type { Logger } from 'pino';
import { type ApiKey, ApiKeys } from '../../auth/api-keys.ts';
import type { Authenticator } from '../../auth/authenticate.ts';
import type { CredentialWatch } from '../../auth/credential-watch.ts';
import { createProxyIdentity } from '../../auth/proxy-identity.ts';
import { readKeysFile } from '../../config/access/api-key-sources.ts';
import type { GatewayConfig } from '../../config/config.ts';
import { type ReportIssue, renderIssueMessage } from '../../config/issues.ts';
import { flagOf } from '../../config/options/option-names.ts';
import { watchFiles } from '../file-watch.ts';

/** Who may use the gateway. */
export interface ClientAuthentication {
  /** Of the kinds of credentials that the gateway itself knows, in the order in which they are asked. */
  readonly authenticators: readonly Authenticator[];
  /** Headers that say who somebody is, in small letters. */
  readonly identityHeaders: readonly string[];
  /** Reads again what may have changed; what is wrong changes nothing, and is logged. Not there where nothing is read. */
  readonly reload?: (() => void) | undefined;
  /** Files are not watched any more. */
  close(): void;
}

/** Puts together what is configured. Throws an error for the operator if the file of keys is not what it was just now. */
export function createAuthentication(
  config: GatewayConfig,
  watch: CredentialWatch,
  logger: Logger,
): ClientAuthentication {
  const { apiKeysFile, apiKeys, proxyIdentityHeader: header, proxyScopesHeader: scopesHeader, trustedProxy } = config;
  const hierarchy = new Map(Object.entries(config.impliedScopes));
  const nothing = { close: () => undefined };
  const keys = new ApiKeys([...apiKeys, ...(apiKeysFile === undefined ? [] : loadKeys(apiKeysFile))], hierarchy);
  const proxy =
    header === undefined ? [] : [createProxyIdentity({ header, scopesHeader, trusted: trustedProxy, hierarchy })];
  const hasKeys = apiKeysFile !== undefined || apiKeys.length > 0;
  const authenticators = [...proxy, ...(hasKeys ? [keys.authenticator] : [])];
  const identityHeaders = [header, scopesHeader].filter((name) => name !== undefined);
  if (apiKeysFile === undefined) return { ...nothing, authenticators, identityHeaders };

  const reload = (): void => {
    try {
      const ofFile = loadKeys(apiKeysFile);
      keys.replace([...apiKeys, ...ofFile]);
      watch.sweep();
      const level = ofFile.length === 0 ? 'warn' : 'info'; // which lets nobody in
      logger[level]({ keys: ofFile.length }, 'reloaded the API key file');
    } catch (error) {
      logger.error(
        { why: (error as Error).message },
        'cannot use the changed API key file; the previous keys stay valid',
      );
    }
  };
  const files = watchFiles([apiKeysFile], reload);
  return { authenticators, identityHeaders, reload, close: files.stop };
}

function loadKeys(file: string): readonly ApiKey[] {
  const faults: string[] = [];
  const report: ReportIssue = (path, message) => faults.push(`${path} ${renderIssueMessage(message, flagOf)}`);
  const keys = readKeysFile(readFileSync(file, 'utf8'), file, report);
  if (keys === undefined) throw new Error(faults.join('; '));
  return keys;
}
