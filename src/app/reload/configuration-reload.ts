// src/app/reload: applies changes of the configuration file and of certificates while the gateway runs.

import type { Configuration, GatewayConfig, ServerConfig } from '../../config/config.ts';
import { renderIssue } from '../../config/issues.ts';
import { gatewayLeaves } from '../../config/options/options.ts';
import { leafValue } from '../../config/tree/branch.ts';
import { type Log, setLevels } from '../../core/ops/log/log.ts';
import { readLogLevels } from '../../core/ops/log/log-parts.ts';
import type { ServerEvent } from '../../core/ops/server-events.ts';
import type { Emit } from '../../core/util/telemetry/emit.ts';
import type { FileStates } from '../file-watch.ts';
import type { ServerChanges } from '../servers/server-set.ts';

/** The source of the configuration. */
export interface ConfigurationSource {
  /** The configuration file, if there is one, and the files and folders that it included at the start. Changes of them cause a reload. */
  readonly files: readonly string[];
  /** The states of these files when they were read. */
  readonly states: FileStates;
  /** Reads everything again. Never throws. */
  read(): Configuration;
}

/** The parts of a reload. */
export interface ConfigurationReload {
  readonly source: ConfigurationSource;
  /** The configuration at the start of the gateway. */
  readonly started: GatewayConfig;
  /**
   * Replaces the servers, and returns the changed ones and their URLs. Throws an error for the operator if that is
   * impossible, and changes nothing then.
   */
  replace(servers: readonly ServerConfig[]): ServerChanges & { readonly urls: ServerChanges };
  readonly log: Log;
  readonly emit: Emit<ServerEvent>;
}

/** The result of the latest reload. */
export interface ReloadOutcome {
  /** False if the latest configuration could not be used and changed nothing. */
  readonly isSuccessful: boolean;
  /** The time at which the configuration in use was read, since the epoch. */
  readonly succeededAtMs: number;
}

/** Reloads the configuration and remembers the result. */
export interface Reloader {
  reload(): void;
  /** The result of the latest try; the start counts as the first one. */
  readonly last: ReloadOutcome;
}

/** Creates the reloader of a gateway. */
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

/**
 * True for an option of authentication. A new server must not be reachable before the authentication that it was
 * configured with.
 */
const isOfSecurity = (path: string): boolean => path.startsWith('auth.') || path === 'listen.publicUrl';

/** The options of the gateway that a reload changes. */
const reloaded: readonly string[] = ['observe.logLevel'];

/**
 * Reads the configuration again and replaces the servers. A configuration with faults changes nothing, and all faults
 * are logged. Global options except the log levels take effect only at a start, which is logged too. A change of
 * authentication options prevents the whole reload.
 * @returns false if the reload failed and nothing was changed
 */
function reloadConfiguration({ source, started, replace, log, emit }: ConfigurationReload): boolean {
  const logger = log.app;
  const read = source.read();
  if (!read.ok) {
    const faults = read.faults.map(renderIssue);
    logger.error({ faults }, 'the changed configuration is invalid; the previous configuration stays in use');
    emit({ type: 'configuration-refused', detail: faults.join(' ') });
    return false;
  }
  if (!('config' in read)) return true; // the command is part of the command line, which does not change
  const { config, warnings, origins } = read;
  // Only the file can have changed: the command line and the environment of a process do not change.
  const placeOf = (path: string): string => {
    const place = origins.get(path)?.place;
    return place === undefined ? path : `${place}: ${path}`;
  };
  for (const warning of warnings) logger.warn(warning);
  const differing = [...gatewayLeaves]
    .filter(([path, option]) => !isSame(leafValue(started, path, option), leafValue(config, path, option)))
    .map(([path]) => path)
    .filter((path) => !reloaded.includes(path));
  const securityChanges = differing.filter(isOfSecurity);
  if (securityChanges.length > 0) {
    const options = securityChanges.map(placeOf);
    logger.error(
      { options },
      'the changed configuration has different authentication options, which need a restart; the previous configuration stays in use',
    );
    emit({ type: 'configuration-refused', detail: `These options need a restart: ${options.join(', ')}.` });
    return false;
  }
  if (differing.length > 0)
    logger.warn({ options: differing.map(placeOf) }, 'these changed options take effect after a restart');
  try {
    const changes = replace(config.servers);
    const logLevels = readLogLevels(config.observe.logLevel);
    const { added, changed, removed } = changes;
    const isUnchanged = [added, changed, removed].every((names) => names.length === 0);
    const { logLevel } = config.observe;
    if (isUnchanged) logger.info({ logLevel }, 'reloaded the configuration; its servers are unchanged');
    else logger.info({ ...changes, logLevel }, 'reloaded the configuration');
    emit({ type: 'configuration-reloaded', added, changed, removed });
    if (logLevels.ok) setLevels(log, logLevels.levels); // after the log line, which the new levels may suppress
    return true;
  } catch (error) {
    const detail = (error as Error).message;
    logger.error(
      { detail },
      'the changed configuration has a server that cannot be used; the previous configuration stays in use',
    );
    emit({ type: 'configuration-refused', detail });
    return false;
  }
}

const isSame = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);
