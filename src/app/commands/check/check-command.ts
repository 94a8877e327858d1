// src/app/commands/check: checks servers, Redis and the configuration, and renders the results.

import type { ServerConfig } from '../../../config/config.ts';
import { policySettings } from '../../../config/options/policy-option.ts';
import type { ServerAddress } from '../../../config/server-url.ts';
import { isView } from '../../../config/servers/views.ts';
import type { UpstreamTls } from '../../../core/backend/upstream-tls.ts';
import { helpForCommand } from '../../../core/ops/health/start-help.ts';
import { type GatewaySetup, needed } from '../../features/gateway-features.ts';
import type { PackageFailure } from '../../features/servers.ts';
import type { RedisFeature, RedisFindings } from '../../features/stores.ts';
import { ServerUnusableError } from '../../probes/probe-session.ts';
import { describePackage, installPackage, packageServerOf } from '../../servers/package-server.ts';
import { readTlsFiles } from '../../tls-files.ts';
import type { Advice } from './advice.ts';
import { examine, type Findings } from './examine-server.ts';
import { adviceOnInstances, adviceOnRedis, adviceOnServer, adviceOnViewFilters } from './findings-advice.ts';
import { adviceOnView } from './name-advice.ts';
import type { FilteredItems } from './unused-filters.ts';

/** The result of checking a server. */
export type CheckedServer =
  | {
      readonly isFine: true;
      readonly server: ServerConfig;
      readonly transport: string;
      /** The package that contains the server, with its version. */
      readonly package?: string;
      readonly findings: Findings & { readonly items?: FilteredItems };
    }
  | { readonly isFine: false; readonly server: ServerConfig; readonly failure: ServerUnusableError };

/** The result of checking Redis. */
export type CheckedRedis =
  /** `link`: from where other instances reach this one. `unreachable`: the addresses of those that cannot be reached. */
  | {
      readonly isFine: true;
      readonly findings: RedisFindings;
      readonly link: string;
      readonly unreachable: readonly string[];
    }
  | { readonly isFine: false; readonly why: string };

/** The result of asking the policy service of a server or a view; `why` is set if its answer cannot be used. */
export interface CheckedPolicy {
  readonly server: string;
  readonly why: string | undefined;
}

/** The callbacks for the results of a check, called as soon as a result is known. */
export interface CheckListener {
  /** Called in the order of the configuration. */
  onServer(checked: CheckedServer): void;
  onRedis(checked: CheckedRedis): void;
  /** Called for each server and view with a policy. */
  onPolicy(checked: CheckedPolicy): void;
  /** Called once with all advice. */
  onAdvice(advice: readonly Advice[]): void;
}

/**
 * The number of servers that are checked at once. They mostly wait for a package registry or a disk, but share
 * processors.
 */
const atOnce = 4;

/** The oldest version that supports the commands of the store. */
const oldestRedis = [6, 2] as const;

/**
 * Checks each server, some at once: starts it, detects its era, lists its features and ends it. Also checks Redis, if
 * there is one, and the configuration.
 * @param notes what is known of the configuration before (`notesOn`); a part of the advice
 * @param note called with a line about the checks that take long
 * @returns true if every server and Redis work
 */
export async function check(
  setup: GatewaySetup,
  notes: readonly Advice[],
  listener: CheckListener,
  note: (line: string) => void,
): Promise<boolean> {
  let isFine = true;
  const { config, features } = setup;
  const advice: Advice[] = [...notes];
  // The servers of a view are checked by themselves.
  const servers = config.servers.filter((server) => !isView(server));
  const waiting = new WaitingNotes(servers.length, note);
  const tryOne = async (server: ServerConfig): Promise<CheckedServer> => {
    waiting.begin(server.name);
    const checked = await tryServer(server, setup);
    waiting.end(server.name);
    return checked;
  };
  const found = new Map<string, Findings>();
  await reportInOrder(servers, atOnce, tryOne, (checked) => {
    listener.onServer(checked);
    isFine &&= checked.isFine;
    if (!checked.isFine) return;
    found.set(checked.server.name, checked.findings);
    advice.push(...adviceOnServer(checked.server, checked.findings));
  });
  for (const server of config.servers)
    advice.push(...adviceOnView(server, found), ...adviceOnViewFilters(server, found));
  for (const { name, policy } of config.servers) {
    const settings = policySettings(policy);
    if (settings === undefined) continue;
    const why = await needed(features.policy, '"policy" of a server').test(name, settings);
    listener.onPolicy({ server: name, why });
    isFine &&= why === undefined;
  }
  const redis = await checkRedis(setup);
  if (redis !== undefined) {
    listener.onRedis(redis);
    isFine &&= redis.isFine;
    if (redis.isFine) advice.push(...adviceOnRedis(redis.findings), ...adviceOnInstances(redis.unreachable));
  }
  listener.onAdvice(advice);
  return isFine;
}

/** A server that takes this long is worth a line. */
const noteAfterMs = 10_000;

/** Writes a line whenever no check has begun or ended for ten seconds. */
export class WaitingNotes {
  readonly #total: number;
  readonly #note: (line: string) => void;
  readonly #underWay = new Set<string>();
  #done = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(total: number, note: (line: string) => void) {
    this.#total = total;
    this.#note = note;
  }

  begin(name: string): void {
    this.#underWay.add(name);
    this.#wait();
  }

  end(name: string): void {
    this.#underWay.delete(name);
    this.#done++;
    this.#wait();
  }

  #wait(): void {
    clearInterval(this.#timer);
    if (this.#underWay.size === 0) return;
    const line = `${this.#done} of ${this.#total} checked; still checking ${[...this.#underWay].join(', ')}\n`;
    this.#timer = setInterval(() => this.#note(line), noteAfterMs).unref();
  }
}

/**
 * Starts a server, lists its features and stops it.
 * @param look `shown` lists what clients see; `listed`, what the server itself lists
 */
export async function tryServer(
  server: ServerConfig,
  setup: GatewaySetup,
  look: 'listed' | 'shown' = 'listed',
): Promise<CheckedServer> {
  try {
    const packaged = packageServerOf(server, setup);
    if (packaged !== undefined && server.address === undefined) {
      // The time limit of the start is not for the installation.
      const { environment } = setup;
      const options = { config: server, server: packaged, environment, emit: () => undefined };
      const cause = await installPackage(options);
      if (cause !== undefined && !packaged.request.isLauncher) throw cause;
    }
    const { transport, ...findings } = await examine(server, setup, look);
    const itsPackage = describePackage(server, setup);
    return { isFine: true, server, transport, findings, ...(itsPackage !== undefined && { package: itsPackage }) };
  } catch (error) {
    const { message: why, output: lines = [] } = error as Partial<PackageFailure> & Error;
    const failure = error instanceof ServerUnusableError ? error : new ServerUnusableError(why, { output: lines });
    const { message, help: known, output, end } = failure;
    const help = helpForCommand(known, server.address === undefined ? [server.command, ...server.args] : []);
    const what = explainWrongPath(server.address, end?.status) ?? message;
    return { isFine: false, server, failure: new ServerUnusableError(what, { help, output, ...(end && { end }) }) };
  }
}

async function checkRedis({ config, features, environment }: GatewaySetup): Promise<CheckedRedis | undefined> {
  const { redis: url, prefix } = config.cluster;
  const { redisTimeoutMs: commandTimeoutMs } = config.derived;
  if (url === undefined) return undefined;
  let tls: UpstreamTls;
  let feature: RedisFeature;
  try {
    feature = needed(features.redis, '--redis');
    tls = readTlsFiles('cluster.tls', config.cluster.tls);
  } catch (error) {
    return { isFine: false, why: (error as Error).message };
  }
  try {
    const findings = await feature.inspect({ url, prefix, tls, commandTimeoutMs });
    if (isTooOld(findings.version)) {
      const oldest = oldestRedis.join('.');
      return {
        isFine: false,
        why: `The Redis version is ${findings.version}, but the gateway needs ${oldest} or later. Upgrade Redis.`,
      };
    }
    const cluster = needed(features.cluster, '--redis');
    const unreachable = await cluster.findUnreachable(findings.addresses, environment);
    return { isFine: true, findings, link: cluster.describeLink(config), unreachable };
  } catch (error) {
    const { detail, help } = feature.explain(error);
    return { isFine: false, why: `${detail} ${help}` };
  }
}

/** Valkey continues the version numbers of Redis from 7.2, so one rule is enough. */
function isTooOld(version: string | undefined): boolean {
  const [major = 0, minor = 0] = (version ?? '').split('.').map(Number);
  return version !== undefined && (major < oldestRedis[0] || (major === oldestRedis[0] && minor < oldestRedis[1]));
}

/**
 * Works on all items, at most `atOnce` at a time. Reports each result in the order of the items, as soon as all results
 * before it are reported. Rejects with the first failure.
 */
export async function reportInOrder<Item, Result>(
  items: readonly Item[],
  atOnce: number,
  work: (item: Item) => Promise<Result>,
  report: (result: Result) => void,
): Promise<void> {
  const unreported = new Map<number, () => void>();
  const queue = items.entries(); // shared by all workers: each takes the next item
  let next = 0;
  const worker = async (): Promise<void> => {
    for (const [index, item] of queue) {
      const result = await work(item);
      unreported.set(index, () => report(result));
      for (let reportNext = unreported.get(next); reportNext !== undefined; reportNext = unreported.get(next)) {
        unreported.delete(next++);
        reportNext();
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, worker));
}

/** The usual paths of MCP endpoints, the most likely one first. */
const usualPaths = { http: ['/mcp'], sse: ['/sse'], auto: ['/mcp', '/sse'], ws: ['/ws'] } as const;

/**
 * Explains a status that says that there is no endpoint at the path of a server's URL, with the URLs that are likely
 * right; undefined for any other status. Only for the operator who runs `check`: a path can hold a secret, so no log has
 * it.
 */
function explainWrongPath(address: ServerAddress | undefined, status: number | undefined): string | undefined {
  if (status !== 404 && status !== 405) return undefined;
  if (address === undefined || !('url' in address)) return undefined;
  const { origin, pathname } = address.url;
  const [usual, ...others] = usualPaths[address.transport];
  // A gateway for several servers has the endpoint of each below its name.
  const below = pathname.replace(/\/(?:(?:mcp|sse|ws)\/?)?$/, '') + usual;
  const likely = new Set([usual, below, ...others]);
  likely.delete(pathname);
  const urls = [...likely].map((path) => origin + path);
  const tries = urls.length === 0 ? '' : `try ${urls.join(', ')}, or `;
  const advice = `${tries}look for the path in the documentation of the server`;
  return `${origin} has no MCP server at the path ${pathname} (${status}). Correct the URL: ${advice}.`;
}
