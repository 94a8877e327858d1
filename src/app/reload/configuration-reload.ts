import type { Configuration, GatewayConfig, ServerConfig } from '../../config/config.ts';
import { authOptions } from '../../config/options/auth-options.ts';
import { oauthOptions } from '../../config/options/oauth-options.ts';
import { flagOf } from '../../config/options/option-names.ts';
import { globalOptions } from '../../config/options/options.ts';
import { type Log, setLevels } from '../../ops/log/log.ts';
import { readLogLevels } from '../../ops/log/log-parts.ts';
import type { ChangedUrls } from '../addresses/server-urls.ts';
import type { FileStates } from '../file-watch.ts';
import type { ServerChanges } from '../servers/server-set.ts';

/** Where the configuration comes from. */
export interface ConfigurationSource {
  /** The file, if there is one. */
  readonly file: string | undefined;
  /** Its state when it was read. */
  readonly states: FileStates;
  /** Reads everything again. Never throws. */
  read(): Configuration;
}

/** What has changed, and the URLs of it. */
export interface ReplacedServers extends ServerChanges {
  readonly urls: ChangedUrls;
}

/** What a reload needs. */
export interface ConfigurationReload {
  readonly source: ConfigurationSource;
  /** What the gateway was started with. */
  readonly started: GatewayConfig;
  /** Serves these servers from now on. Throws an error for the operator if it cannot, and nothing has changed then. */
  replace(servers: readonly ServerConfig[]): ReplacedServers;
  readonly log: Log;
}

/** What came of reading the configuration. */
export interface ReloadOutcome {
  /** False where the newest one changed nothing, for it cannot be used. */
  readonly isSuccessful: boolean;
  /** When one was read that is in use, by the clock of the machine. */
  readonly succeededAtMs: number;
}

/** Reads the configuration again, and knows what came of it. */
export interface Reloader {
  reload(): void;
  /** Of the newest try; the start is the first one. */
  readonly last: ReloadOutcome;
}

/** Makes what reads the configuration again. */
export function createReloader(parts: ConfigurationReload): Reloader {
  let last: ReloadOutcome = { isSuccessful: true, succeededAtMs: Date.now() };
  return {
    reload() {
      const isSuccessful = reloadConfiguration(parts);
      last = { isSuccessful, succeededAtMs: isSuccessful ? Date.now() : last.succeededAtMs };
    },
    get last() {
      return last;
    },
  };
}

type GlobalKey = keyof typeof globalOptions;

/** Who may use servers: a server that is meant for those must not be there before they are asked who they are. */
const securityKeys = [...Object.keys({ ...authOptions, ...oauthOptions })] as readonly GlobalKey[];

/** What is changed by a reload beside the servers. */
const reloadedKeys: readonly GlobalKey[] = ['logLevel'];

/**
 * Reads the configuration again and serves the servers that it has. One with a fault changes nothing, and all its faults are
 * told. Options of the gateway as a whole but the levels of the log take effect at a start only, which is told, too; if they are
 * about authentication, nothing is changed before.
 * @returns false if nothing was changed since that is not possible
 */
function reloadConfiguration({ source, started, replace, log }: ConfigurationReload): boolean {
  const logger = log.app;
  const read = source.read();
  if (!read.ok) {
    const faults = read.faults.map(({ path, message }) => `${path}: ${message}`);
    logger.error({ faults }, 'the changed configuration is invalid; the previous one stays in use');
    return false;
  }
  if (!('config' in read)) return true; // the command line, which decides what is done, does not change
  const { config, warnings } = read;
  for (const warning of warnings) logger.warn(warning);
  const atStartOnly = (Object.keys(globalOptions) as GlobalKey[]).filter((key) => !reloadedKeys.includes(key));
  const differing = atStartOnly.filter((key) => !isSame(started[key], config[key]));
  const ofSecurity = differing.filter((key) => securityKeys.includes(key));
  if (ofSecurity.length > 0) {
    const options = ofSecurity.map(flagOf);
    logger.error(
      { options },
      'the changed configuration has other authentication options, which need a restart; the previous one stays in use',
    );
    return false;
  }
  if (differing.length > 0)
    logger.warn({ options: differing.map(flagOf) }, 'these changed options take effect after a restart');
  try {
    const changes = replace(config.servers);
    const logLevels = readLogLevels(config.logLevel);
    const { added, changed, removed } = changes;
    const isNothing = [added, changed, removed].every((names) => names.length === 0);
    const { logLevel } = config;
    if (isNothing) logger.info({ logLevel }, 'reloaded the configuration; its servers are unchanged');
    else logger.info({ ...changes, logLevel }, 'reloaded the configuration');
    if (logLevels.ok) setLevels(log, logLevels.levels); // behind the line, which new levels may leave out
    return true;
  } catch (error) {
    logger.error(
      { detail: (error as Error).message },
      'the changed configuration has a server that cannot be used; the previous one stays in use',
    );
    return false;
  }
}

const isSame = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);
