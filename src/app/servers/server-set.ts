// src/app/servers: starts the configured servers, probes them, and replaces them at a reload.

import type { Logger } from 'pino';
import type { GatewayConfig, ServerConfig } from '../../config/config.ts';
import { usesClientCredentials } from '../../config/options/client-credential-options.ts';
import { isView } from '../../config/servers/views.ts';
import type { ListSubscriber } from '../../core/backend/list-reader.ts';
import type { ServerHealth } from '../../core/ops/health/server-health.ts';
import type { Era } from '../../core/protocol/revisions.ts';
import type { Server } from '../../core/server/server.ts';
import { detach } from '../../core/util/boundary.ts';
import { warnOfAffinity, warnOfSharing } from '../access/exposure.ts';
import { type ServerProbe, startProbing } from './health-probe.ts';
import { describePackage } from './package-server.ts';
import { missingCommand, type RunningServer, runServer, type ServerTelemetry } from './run-server.ts';
import { runView } from './run-view.ts';
import { type ServedServer, type ServingParts, serve } from './served-server.ts';
import { awaitStart, probeMs } from './start-probe.ts';

/** The parts that the servers of a gateway need. */
export interface ServerSetParts extends ServingParts {
  readonly telemetry: ServerTelemetry;
  readonly health: ServerHealth;
  readonly logger: Logger;
  /** The only server ended right after its start. The message is for the operator. */
  onUseless(message: string): void;
  /** A server that was in use has no sessions and no processes any more. */
  onGone(config: ServerConfig): void;
}

/** The servers that a new configuration adds, changes and removes: their names, or their URLs. */
export interface ServerChanges {
  readonly added: readonly string[];
  readonly changed: readonly string[];
  readonly removed: readonly string[];
}

/**
 * The number of old configurations of one server that stay for their sessions. Frequent reloads must not fill memory
 * (P8).
 */
const maxFormer = 8;

/**
 * The servers of a gateway: the configured ones, and former ones for as long as their sessions last
 * (docs/decisions/0041).
 */
export class ServerSet {
  readonly #parts: ServerSetParts;
  #current = new Map<string, ServedServer>();
  readonly #former = new Set<ServedServer>();
  readonly #probes = new Map<ServedServer, ServerProbe>();
  /** Report changes of the tools of a server, whatever its configuration is. */
  readonly #definitionWatches = new Map<string, ListSubscriber>();
  /** See `GatewayConfig`. */
  #firstServer: string | undefined;

  private constructor(parts: ServerSetParts) {
    this.#parts = parts;
  }

  /**
   * Starts the configured servers. A single server is tried, so that a typo is found now and not by the first client.
   * Rejects with an error for the operator if a server cannot be started.
   */
  static async start(parts: ServerSetParts): Promise<ServerSet> {
    const set = new ServerSet(parts);
    const { servers } = parts.setup.config;
    for (const server of servers) set.#addToHealth(server);
    const [only, ...others] = servers;
    const isSingle = only !== undefined && others.length === 0;
    // A server that needs client credentials may need them from its first connection, so it cannot be tried without a
    // client.
    const running =
      isSingle && !usesClientCredentials(only) ? [await set.#try(only)] : servers.map((server) => set.#run(server));
    // Until a single server has survived `probeMs`, only a real client may start the shared process. Otherwise the exit
    // of that process would not count as a failed start.
    for (const each of running) set.#add(each, isSingle ? probeMs : 0);
    set.#noteFirst();
    return set;
  }

  /** The configured servers. */
  get current(): readonly ServedServer[] {
    return [...this.#current.values()];
  }

  /** The configured servers, followed by removed ones that still have sessions. */
  get reachable(): readonly ServedServer[] {
    const removed = [...this.#former].filter(({ config }) => !this.#current.has(config.name));
    return [...this.current, ...removed];
  }

  /** The current configuration. */
  get config(): GatewayConfig {
    const servers = this.current.map(({ config }) => config);
    return { ...this.#parts.setup.config, servers, firstServer: this.#firstServer };
  }

  /** The era of a configured server; undefined while it is unknown. */
  eraOf(name: string): Era | undefined {
    return this.#current.get(name)?.eras?.era;
  }

  /** A configured server as its sessions use it, whatever its era is. */
  serverOf(name: string): Server | undefined {
    return this.#current.get(name)?.server;
  }

  /** A server with its former configuration, for sessions that were opened before the change. */
  former(name: string, digest: string): Server | undefined {
    const newestFirst = [...this.#former].reverse();
    return newestFirst.find(({ server }) => server.name === name && server.digest === digest)?.server;
  }

  /**
   * Replaces the configured servers. Unchanged servers continue untouched. A changed server, and each view of it, starts
   * anew for new sessions; existing sessions keep the old configuration until they end or `replacedServerMs` has
   * passed. Throws an error for the operator if a server cannot be started, and changes nothing then.
   */
  replace(servers: readonly ServerConfig[]): ServerChanges {
    const before = this.#current;
    const started = new Map(this.#runAll(servers.filter(isChangedIn(servers, before))));
    this.#current = new Map();
    for (const { name } of servers) {
      const [running, kept] = [started.get(name), before.get(name)];
      if (running !== undefined) {
        this.#addToHealth(running.config);
        this.#add(running);
      } else if (kept !== undefined) this.#current.set(name, kept);
    }
    for (const [name, served] of before) {
      if (!this.#current.has(name)) this.#parts.health.remove(name);
      if (this.#current.get(name) !== served) this.#retire(served);
    }
    // A removed server keeps no sessions, not even those of its earlier configurations.
    for (const { config, server } of this.#former)
      if (!this.#current.has(config.name)) this.#parts.sessions.retirements.hurry(server);
    this.#noteFirst();
    const names = [...started.keys()];
    const removed = [...before.keys()].filter((name) => !this.#current.has(name));
    for (const server of removed) {
      this.#definitionWatches.delete(server);
      this.#parts.emit({ type: 'server-removed', server });
    }
    return {
      added: names.filter((name) => !before.has(name)),
      changed: names.filter((name) => before.has(name)),
      removed,
    };
  }

  /** Ends all servers gracefully while their sessions are drained (P9). Resolves when no process is left. */
  async drain(graceMs: number, drainSessions: () => Promise<void>): Promise<void> {
    const all = [...this.current, ...this.#former];
    for (const probe of this.#probes.values()) probe.stop();
    for (const { eras } of all) eras?.closeSubscriptions();
    const keptEnded = all.map(({ kept }) => kept?.close());
    const sessionsEnded = drainSessions();
    await Promise.all([sessionsEnded, ...keptEnded, ...all.map(({ eras }) => eras?.drain(graceMs, sessionsEnded))]);
    await this.close();
  }

  /** Ends the spare processes. */
  async close(): Promise<void> {
    await Promise.all(this.current.map(({ running, kept }) => Promise.all([running.pool.close(), kept?.close()])));
  }

  /** The longest time that a server may take to end, in milliseconds. */
  get longestEndMs(): number {
    return this.#parts.setup.config.timeouts.graceMs;
  }

  /** Starts a server. Throws an error for the operator if the server cannot be started. */
  #run(server: ServerConfig): RunningServer {
    const { setup, telemetry } = this.#parts;
    return isView(server)
      ? runView(server, setup, telemetry, (name) => this.serverOf(name))
      : runServer(server, setup, this.#watchedTelemetry());
  }

  #try(config: ServerConfig): Promise<RunningServer> {
    const { setup, onUseless } = this.#parts;
    return awaitStart({ config, setup, telemetry: this.#watchedTelemetry(), onUseless });
  }

  #watchedTelemetry(): ServerTelemetry {
    return { ...this.#parts.telemetry, ownListSubscribers: (server) => this.#watchDefinitions(server) };
  }

  #watchDefinitions(server: string): readonly ListSubscriber[] {
    const { setup, values, emit, onStoreFailure } = this.#parts;
    const watch =
      this.#definitionWatches.get(server) ??
      setup.features.definitions?.watch({
        server,
        values,
        onChanged: (tool, members) => emit({ type: 'tool-changed', server, tool, members }),
        onFailed: onStoreFailure,
      });
    if (watch === undefined) return [];
    this.#definitionWatches.set(server, watch);
    return [watch];
  }

  /** Adds a server to `health`, with an unknown state. */
  #addToHealth(server: ServerConfig): void {
    const { name, address, probes } = server;
    this.#parts.health.add(name, {
      transport: address?.transport ?? 'stdio',
      isRequired: probes.required,
      package: () => describePackage(server, this.#parts.setup),
      members: address?.transport === 'view' ? address.members.map((member) => member.name) : undefined,
      era: () => this.eraOf(name),
    });
  }

  /** Takes a server into use, and tells the operator what may be wrong with it. */
  #add(running: RunningServer, startAheadMs?: number): void {
    const { config } = running;
    const { setup, emit, health, knownUsers, logger } = this.#parts;
    const served = serve(running, this.#parts, startAheadMs);
    this.#current.set(config.name, served);
    const missing = missingCommand(config, setup.environment);
    if (missing !== undefined) emit({ type: 'command-not-found', server: config.name, detail: missing });
    warnOfSharing(config, setup.config, logger);
    warnOfAffinity(config, knownUsers(), logger);
    const probe = startProbing(served, health, logger);
    if (probe !== undefined) this.#probes.set(served, probe);
  }

  #runAll(servers: readonly ServerConfig[]): [string, RunningServer][] {
    const started: [string, RunningServer][] = [];
    try {
      for (const config of servers) started.push([config.name, this.#run(config)]);
    } catch (error) {
      for (const [, { pool }] of started) detach('background', pool.close());
      throw error;
    }
    return started;
  }

  /** Sessions of a changed server may continue for `replacedServerMs`. Sessions of a removed server are drained. */
  #retire(served: ServedServer): void {
    const { config, running, server, eras, kept } = served;
    const { sessions, setup, onGone } = this.#parts;
    const { config: gateway } = setup;
    const lingerMs = this.#current.has(config.name) ? gateway.derived.replacedServerMs : 0;
    this.#former.add(served);
    const ofThis = [...this.#former].filter((other) => other.config.name === config.name);
    for (const old of ofThis.slice(0, -maxFormer)) sessions.retirements.hurry(old.server);
    this.#probes.get(served)?.stop();
    this.#probes.delete(served);
    eras?.closeSubscriptions();
    const sessionsEnded = sessions.retirements.retire(server, { lingerMs, graceMs: gateway.timeouts.drainMs });
    const ended = [
      running.pool.close(),
      kept?.close(),
      eras?.drain(lingerMs + gateway.timeouts.drainMs, sessionsEnded),
      sessionsEnded,
    ];
    detach(
      'background',
      Promise.all(ended).then(() => {
        this.#former.delete(served);
        onGone(config);
      }),
    );
  }

  #noteFirst(): void {
    const [only, ...others] = this.#current.keys();
    if (this.#current.has(this.#firstServer ?? '')) return;
    this.#firstServer = others.length === 0 ? only : undefined;
  }
}

/**
 * Finds the configurations that differ from those before. A view changes with its servers: its sessions have backends of
 * them.
 */
function isChangedIn(
  servers: readonly ServerConfig[],
  before: ReadonlyMap<string, ServedServer>,
): (config: ServerConfig) => boolean {
  const differing = servers.filter((config) => !isSameConfig(before.get(config.name)?.config, config));
  const names = new Set(differing.map(({ name }) => name));
  return ({ name, address }) =>
    names.has(name) || (address?.transport === 'view' && address.members.some((member) => names.has(member.name)));
}

/** True if both configurations are the same. They are compared as text: Node.js considers any two URL objects equal. */
const isSameConfig = (a: ServerConfig | undefined, b: ServerConfig): boolean => JSON.stringify(a) === JSON.stringify(b);
