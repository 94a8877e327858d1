import { readFileSync } from 'node:fs';
import type { Logger } from 'pino';
import { readKeysFile } from '../../config/access/api-key-sources.ts';
import { hasAuthentication, strangersOf } from '../../config/access/authentication-config.ts';
import type { GatewayConfig } from '../../config/config.ts';
import { type ReportIssue, renderIssueMessage } from '../../config/issues.ts';
import { namesAt } from '../../config/options/option-names.ts';
import type { KnownUsers } from '../../config/servers/process-sharing.ts';
import { type ApiKey, ApiKeys } from '../../core/auth/api-keys.ts';
import type { Authenticator } from '../../core/auth/authenticate.ts';
import type { CredentialWatch } from '../../core/auth/credential-watch.ts';
import { LocalClients } from '../../core/auth/local-clients.ts';
import { createProxyIdentity } from '../../core/auth/proxy-identity.ts';
import { watchFiles } from '../file-watch.ts';

const strangerDetails = {
  proxied:
    'Anyone may send requests through the proxy, so clients no longer share server processes. Configure authentication, or set --share all if all clients are yours.',
  public:
    'Anyone may send requests from public addresses, so clients no longer share server processes. Configure authentication, or set --share all if all clients are yours.',
};
const strangerMessages = {
  proxied: 'a request came through a proxy',
  public: 'a request came from a public address',
};

/** Creates what identifies clients without authentication, and what is known of all users because of it. */
export function createLocalClients(
  config: GatewayConfig,
  logger: Logger,
): { readonly localClients: LocalClients; knownUsers(): KnownUsers } {
  const isLocal = strangersOf(config) === undefined;
  const localClients = new LocalClients((stranger) => {
    if (isLocal && !hasAuthentication(config))
      logger.warn({ detail: strangerDetails[stranger] }, strangerMessages[stranger]);
  });
  return {
    localClients,
    knownUsers() {
      if (hasAuthentication(config)) return 'users';
      return isLocal && localClients.areAlone ? 'local' : 'unknown';
    },
  };
}

/** The authentication of clients by API keys and by a trusted proxy. */
export interface ClientAuthentication {
  /** The authenticators for credentials that the gateway itself knows, in the order of their use. */
  readonly authenticators: readonly Authenticator[];
  /** The headers that identify a user, in lower case. */
  readonly identityHeaders: readonly string[];
  /** Reads the key file again. A faulty file changes nothing and is logged. Undefined without a key file. */
  readonly reload?: (() => void) | undefined;
  /** Stops watching the key file. */
  close(): void;
}

/** Creates the configured authenticators. Throws an error for the operator if the key file has become invalid. */
export function createAuthentication(
  config: GatewayConfig,
  watch: CredentialWatch,
  logger: Logger,
): ClientAuthentication {
  const { apiKeys, auth } = config;
  const { apiKeysFile, impliedScopes } = auth;
  const { userHeader: header, scopesHeader, addresses: trusted } = auth.proxy;
  const hierarchy = new Map(Object.entries(impliedScopes));
  const keys = new ApiKeys([...apiKeys, ...(apiKeysFile === undefined ? [] : loadKeys(apiKeysFile))], hierarchy);
  const proxy = header === undefined ? [] : [createProxyIdentity({ header, scopesHeader, trusted, hierarchy })];
  const hasKeys = apiKeysFile !== undefined || apiKeys.length > 0;
  const authenticators = [...proxy, ...(hasKeys ? [keys.authenticator] : [])];
  const identityHeaders = [header, scopesHeader].filter((name) => name !== undefined);
  if (apiKeysFile === undefined) return { authenticators, identityHeaders, close: () => undefined };

  const reload = (): void => {
    try {
      const fileKeys = loadKeys(apiKeysFile);
      keys.replace([...apiKeys, ...fileKeys]);
      watch.sweep();
      const level = fileKeys.length === 0 ? 'warn' : 'info'; // a file without keys admits nobody
      logger[level]({ keys: fileKeys.length }, 'reloaded the API key file');
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
  const report: ReportIssue = (path, message) =>
    faults.push(`${path} ${renderIssueMessage(message, namesAt('--', false))}`);
  const keys = readKeysFile(readFileSync(file, 'utf8'), file, report);
  if (keys === undefined) throw new Error(faults.join('; '));
  return keys;
}
