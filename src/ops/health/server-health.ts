import type { BackendEnd } from '../../backend/backend.ts';
import type { Era } from '../../protocol/revisions.ts';
import { type ServerFailure, serverFailureOfEnd } from './server-failure.ts';

/** What came of the newest try to use a server, by whomever. */
export type ServerOutcome =
  /** It answered `initialize`, `server/discover` or a probe. */
  { readonly state: 'started'; readonly at: Date } | ({ readonly state: 'failed'; readonly at: Date } & ServerFailure);

/** What is known of how a server does. Names it as its configuration does, and says nothing that is secret (P12). */
export interface ServerStatus {
  readonly server: string;
  /** `stdio`, `http`, `sse`, `ws`, `tcp` or `unix`; `auto` until it is found out. */
  readonly transport: string;
  /** As far as it is known: that in which it has answered, and `modern` for one that has both, once it was asked for that. */
  readonly era: Era | undefined;
  /** Undefined while nobody has used the server. */
  readonly last: ServerOutcome | undefined;
  /** What the probe says; undefined if the server is not probed, or there is no answer yet. */
  readonly probe: 'up' | 'down' | undefined;
  /** Without this server the instance is not ready. */
  readonly isRequired: boolean;
}

/** A server, as it comes into use. */
export interface ServerOfHealth {
  readonly transport: string;
  readonly isRequired: boolean;
  /** The era as far as it was asked for, or configured. */
  era(): Era | undefined;
}

interface HowEnded {
  readonly isAtStart?: boolean;
  readonly ifClosed?: ServerFailure;
}

interface Entry extends ServerOfHealth {
  foundTransport: string;
  seenEra: Era | undefined;
  last: ServerOutcome | undefined;
  probe: 'up' | 'down' | undefined;
}

/** How the servers of this instance do: what the health checks, the metrics and the status page tell. */
export class ServerHealth {
  readonly #servers = new Map<string, Entry>();
  readonly #listeners = new Set<(server: string) => void>();

  /** A server is in use, or is configured in another way from now on: nothing is known of it. */
  add(server: string, of: ServerOfHealth): void {
    const unknown = { seenEra: undefined, last: undefined, probe: undefined };
    this.#servers.set(server, { ...of, ...unknown, foundTransport: of.transport });
    this.#tell(server);
  }

  /** A server is not configured any more. */
  remove(server: string): void {
    this.#servers.delete(server);
    this.#tell(server);
  }

  /** All servers, in the order in which they came into use. */
  get statuses(): readonly ServerStatus[] {
    return Array.from(this.#servers, ([server, { foundTransport: transport, seenEra, last, probe, ...of }]) => {
      return { server, transport, era: of.era() ?? seenEra, last, probe, isRequired: of.isRequired };
    });
  }

  /** Why the newest try to use a server failed; undefined if it did not. */
  lastFailureOf(server: string): ServerFailure | undefined {
    const last = this.#servers.get(server)?.last;
    return last?.state === 'failed' ? last : undefined;
  }

  /** Calls a listener whenever something of a server changes. Returns what ends that. */
  onChange(listener: (server: string) => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  /** The server answered as it should. */
  started(server: string): void {
    this.#note(server, { state: 'started', at: new Date() });
  }

  /** It did not. */
  failed(server: string, failure: ServerFailure): void {
    this.#note(server, { state: 'failed', at: new Date(), ...failure });
  }

  /**
   * A backend of the server ended.
   * @param isAtStart it ended before it had answered anything
   * @param ifClosed what it means if the gateway itself closed it; nothing if not said
   */
  ended(server: string, end: BackendEnd, { isAtStart = false, ifClosed }: HowEnded = {}): void {
    const failure = serverFailureOfEnd(end, this.#servers.get(server)?.transport !== 'stdio', isAtStart) ?? ifClosed;
    if (failure !== undefined) this.failed(server, failure);
  }

  /** What the probe says from now on. */
  probed(server: string, probe: 'up' | 'down'): void {
    const entry = this.#servers.get(server);
    if (entry === undefined || entry.probe === probe) return;
    entry.probe = probe;
    this.#tell(server);
  }

  /** The transport of a server was found out. */
  transportFound(server: string, transport: string): void {
    const entry = this.#servers.get(server);
    if (entry === undefined) return;
    entry.foundTransport = transport;
    this.#tell(server);
  }

  /** The server has answered in this era. */
  eraSeen(server: string, era: Era): void {
    const entry = this.#servers.get(server);
    if (entry === undefined || entry.seenEra === era) return;
    entry.seenEra = era;
    this.#tell(server);
  }

  #note(server: string, outcome: ServerOutcome): void {
    const entry = this.#servers.get(server);
    if (entry === undefined) return; // of sessions that go on behind a server that is not configured any more
    entry.last = outcome;
    this.#tell(server);
  }

  #tell(server: string): void {
    for (const listener of this.#listeners) listener(server);
  }
}
