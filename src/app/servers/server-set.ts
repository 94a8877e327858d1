import type { Logger } from 'pino';
import type { GatewayConfig, ServerConfig } from '../../config/config.ts';
import type { Era } from '../../protocol/revisions.ts';
import type { Server } from '../../server/server.ts';
import { detach } from '../../util/boundary.ts';
import { type ServerProbe, startProbing } from './health-probe.ts';
import type { RunningServer } from './run-server.ts';
import { type ServedServer, type ServingParts, serve } from './served-server.ts';

/** What the servers of a gateway need; `health` has those that are run. */
export interface ServerSetParts extends ServingParts {
  /** Is told what probes find. */
  readonly logger: Logger;
  /** Starts a server; throws an error for the operator if that cannot be. */
  run(config: ServerConfig): RunningServer;
  /** Has a server in `health` that was started: nothing is known of it yet. */
  noteInUse(config: ServerConfig): void;
  /** A server is in use. */
  onAdded(config: ServerConfig): void;
  /** Nothing is left of a server that was in use. */
  onGone(config: ServerConfig): void;
}

/** What a new configuration is to the servers that there were: their names. */
export interface ServerChanges {
  readonly added: readonly string[];
  readonly changed: readonly string[];
  readonly removed: readonly string[];
}

/** So many configurations that a server had go on for their sessions: whoever writes the file all the time fills no memory (P8). */
const maxFormer = 8;

/**
 * The servers of a gateway: those that are configured, and those that were, for as long as sessions of them go on
 * (docs/decisions/0041).
 */
export class ServerSet {
  readonly #parts: ServerSetParts;
  #current = new Map<string, ServedServer>();
  readonly #former = new Set<ServedServer>();
  readonly #probes = new Map<ServedServer, ServerProbe>();
  /** See `GatewayConfig`. */
  #firstServer: string | undefined;

  /** @param startAheadMs as `serve` has it */
  constructor(parts: ServerSetParts, running: readonly RunningServer[], startAheadMs: number) {
    this.#parts = parts;
    for (const each of running) this.#add(each, startAheadMs);
    this.#noteFirst();
  }

  /** The configured ones. */
  get current(): readonly ServedServer[] {
    return [...this.#current.values()];
  }

  /** The configured ones, and behind them those that were taken out and have sessions. */
  get reachable(): readonly ServedServer[] {
    const removed = [...this.#former].filter(({ config }) => !this.#current.has(config.name));
    return [...this.current, ...removed];
  }

  /** The configuration as it is now. */
  get config(): GatewayConfig {
    const servers = this.current.map(({ config }) => config);
    return { ...this.#parts.config, servers, firstServer: this.#firstServer };
  }

  /** The era of a configured server, as far as it is known. */
  eraOf(name: string): Era | undefined {
    return this.#current.get(name)?.modern.era;
  }

  /** A server as sessions have it that were opened before it was configured in another way. */
  former(name: string, digest: string): Server | undefined {
    const newestFirst = [...this.#former].reverse();
    return newestFirst.find(({ server }) => server.name === name && server.digest === digest)?.server;
  }

  /**
   * Serves these servers from now on. What is configured as before goes on untouched. What is not starts anew for new sessions;
   * those that there are keep what they have, until they end or their time is up. Throws an error for the operator if one
   * cannot be started; then nothing has changed.
   */
  replace(servers: readonly ServerConfig[]): ServerChanges {
    const before = this.#current;
    const isAsBefore = (config: ServerConfig): boolean => isSame(before.get(config.name)?.config, config);
    const started = new Map(this.#runAll(servers.filter((config) => !isAsBefore(config))));
    this.#current = new Map();
    for (const { name } of servers) {
      const [running, kept] = [started.get(name), before.get(name)];
      if (running !== undefined) {
        this.#parts.noteInUse(running.config);
        this.#add(running);
      } else if (kept !== undefined) this.#current.set(name, kept);
    }
    for (const [name, served] of before) {
      if (!this.#current.has(name)) this.#parts.health.remove(name);
      if (this.#current.get(name) !== served) this.#retire(served);
    }
    // Of one that is not there any more nothing goes on, what it was before it was changed neither.
    for (const { config, server } of this.#former)
      if (!this.#current.has(config.name)) this.#parts.sessions.retirements.hurry(server);
    this.#noteFirst();
    const names = [...started.keys()];
    return {
      added: names.filter((name) => !before.has(name)),
      changed: names.filter((name) => before.has(name)),
      removed: [...before.keys()].filter((name) => !this.#current.has(name)),
    };
  }

  /** Ends the servers in order with all sessions, which are drained meanwhile (P9). Resolves when no process is left. */
  async drain(graceMs: number, drainSessions: () => Promise<void>): Promise<void> {
    const all = [...this.current, ...this.#former];
    for (const probe of this.#probes.values()) probe.stop();
    for (const { groups } of all) groups.close();
    const sessionsEnded = drainSessions();
    await Promise.all([sessionsEnded, ...all.map(({ modern }) => modern.drain(graceMs, sessionsEnded))]);
    await this.close();
  }

  /** Ends spare processes. */
  async close(): Promise<void> {
    await Promise.all(this.current.map(({ running }) => running.pool.close()));
  }

  /** The longest that a server may take to end, in milliseconds. */
  get longestEndMs(): number {
    const all = [...this.current, ...this.#former];
    return Math.max(...all.map(({ config }) => config.stdinCloseGraceMs + config.terminateGraceMs));
  }

  #add(running: RunningServer, startAheadMs?: number): void {
    const { config } = running;
    const served = serve(running, this.#parts, startAheadMs);
    this.#current.set(config.name, served);
    this.#parts.onAdded(config);
    const probe = startProbing(served, this.#parts.health, this.#parts.logger);
    if (probe !== undefined) this.#probes.set(served, probe);
  }

  #runAll(servers: readonly ServerConfig[]): [string, RunningServer][] {
    const started: [string, RunningServer][] = [];
    try {
      for (const config of servers) started.push([config.name, this.#parts.run(config)]);
    } catch (error) {
      for (const [, { pool }] of started) detach('background', pool.close());
      throw error;
    }
    return started;
  }

  /** Sessions of one that is there in another way may go on for a while; those of one that is not there end soon. */
  #retire(served: ServedServer): void {
    const { config, running, server, modern, groups } = served;
    const { sessions, config: gateway, onGone } = this.#parts;
    const lingerMs = this.#current.has(config.name) ? gateway.replacedServerMs : 0;
    this.#former.add(served);
    const ofThis = [...this.#former].filter((other) => other.config.name === config.name);
    for (const old of ofThis.slice(0, -maxFormer)) sessions.retirements.hurry(old.server);
    this.#probes.get(served)?.stop();
    this.#probes.delete(served);
    groups.close();
    const sessionsEnded = sessions.retirements.retire(server, { lingerMs, graceMs: gateway.drainMs });
    const ended = [running.pool.close(), modern.drain(lingerMs + gateway.drainMs, sessionsEnded), sessionsEnded];
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

/** True if both are configured in the same way. As text: Node.js finds any two URLs equal where it compares objects. */
const isSame = (a: ServerConfig | undefined, b: ServerConfig): boolean => JSON.stringify(a) === JSON.stringify(b);
