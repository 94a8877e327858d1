// Health: whether the servers work and whether the instance is ready, for probes, metrics and the status page.

import type { BackendEnd } from '../../backend/backend.ts';
import type { Era } from '../../protocol/revisions.ts';
import { detailsOfEnd, type FailureDetails, type ServerFailure, serverFailureOfEnd } from './server-failure.ts';

/** The outcome of the latest attempt to use a server, by any client or probe. */
export type ServerOutcome =
  /** The server answered `initialize`, `server/discover` or a probe. */
  { readonly state: 'started'; readonly at: Date } | ({ readonly state: 'failed'; readonly at: Date } & ServerFailure);

/** The health of a server, under its configured name and without secrets (P12). */
export interface ServerStatus {
  readonly server: string;
  /** `stdio`, `http`, `sse`, `ws`, `tcp` or `unix`; `auto` until the transport is detected. */
  readonly transport: string;
  /** The era in which the server has answered, if known. `modern` for a server of both eras that was probed for it. */
  readonly era: Era | undefined;
  /** Undefined until the server is used. */
  readonly last: ServerOutcome | undefined;
  /** The result of the probe; undefined without probes, or before the first result. */
  readonly probe: 'up' | 'down' | undefined;
  /** If true, the instance is not ready while the server is down. */
  readonly isRequired: boolean;
  /** The servers of a view; undefined for any other server. */
  readonly members?: readonly string[] | undefined;
}

/** The health of a server, and what operators may know of it. */
export interface MonitoredStatus extends ServerStatus {
  /** The package that contains the server, with its version; undefined for any other server. */
  readonly package: string | undefined;
}

/** A server that comes into use. */
export interface MonitoredServer {
  readonly transport: string;
  readonly isRequired: boolean;
  /** The servers of a view. Its state is that of the worst one. */
  readonly members?: readonly string[] | undefined;
  /** The era, if it was detected or configured. */
  era(): Era | undefined;
  /** The package, with the version that is installed now. */
  package?(): string | undefined;
}

interface EndDetails {
  readonly isAtStart?: boolean;
  readonly ifClosed?: ServerFailure;
}

interface Entry extends MonitoredServer {
  foundTransport: string;
  seenEra: Era | undefined;
  last: ServerOutcome | undefined;
  details: FailureDetails | undefined;
  probe: 'up' | 'down' | undefined;
}

/** Records the health of the servers of this instance, for health checks, metrics and the status page. */
export class ServerHealth {
  readonly #servers = new Map<string, Entry>();
  readonly #listeners = new Set<(server: string) => void>();

  /**
   * Adds a server, or replaces one whose configuration has changed. A server that worked, and has the same transport,
   * counts as working until its next use. A failure is forgotten: the change may have corrected it.
   */
  add(server: string, description: MonitoredServer): void {
    const known = this.#servers.get(server);
    const isSame = known?.transport === description.transport && known.last?.state === 'started';
    const last = isSame ? known.last : undefined;
    const unknown = { seenEra: undefined, details: undefined, probe: undefined };
    this.#servers.set(server, { ...description, ...unknown, last, foundTransport: description.transport });
    this.#notifyListeners(server);
  }

  /** Removes a server that is no longer configured. */
  remove(server: string): void {
    this.#servers.delete(server);
    this.#notifyListeners(server);
  }

  /** All servers, in the order in which they were added. */
  get statuses(): readonly MonitoredStatus[] {
    return Array.from(this.#servers, ([server, { foundTransport: transport, seenEra, probe, ...description }]) => {
      return {
        server,
        transport,
        era: description.era() ?? seenEra,
        last: this.#lastOf(server)?.last,
        probe,
        isRequired: description.isRequired,
        members: description.members,
        package: description.package?.(),
      };
    });
  }

  /** The failure of the latest attempt to use a server; undefined if that did not fail. */
  lastFailureOf(server: string): ServerFailure | undefined {
    const last = this.#lastOf(server)?.last;
    return last?.state === 'failed' ? last : undefined;
  }

  /**
   * The details of that failure, for the status page; undefined if nobody knows more. They are no part of `statuses`,
   * which anyone may read at `/readyz`.
   */
  detailsOf(server: string): FailureDetails | undefined {
    return this.#lastOf(server)?.details;
  }

  /** Calls a listener whenever the health of a server changes. Returns a function that removes the listener. */
  onChange(listener: (server: string) => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  /** Records that the server answered. */
  started(server: string): void {
    this.#recordOutcome(server, { state: 'started', at: new Date() });
  }

  /** Records that the server failed. */
  failed(server: string, failure: ServerFailure, details?: FailureDetails): void {
    this.#recordOutcome(server, { state: 'failed', at: new Date(), ...failure }, details);
  }

  /**
   * Records that a backend of the server ended.
   * @param isAtStart true if the backend ended before it had answered anything
   * @param ifClosed the failure to record if the gateway itself closed the backend; none by default
   */
  ended(server: string, end: BackendEnd, { isAtStart = false, ifClosed }: EndDetails = {}): void {
    const failure = serverFailureOfEnd(end, this.#servers.get(server)?.transport !== 'stdio', isAtStart) ?? ifClosed;
    if (failure === undefined) return;
    // What the gateway closed ended because of the gateway, so its end does not show the cause.
    const details = end.reason === 'closed' ? undefined : detailsOfEnd(end, isAtStart);
    this.failed(server, failure, details);
  }

  /** Records the result of a probe. */
  probed(server: string, probe: 'up' | 'down'): void {
    const entry = this.#servers.get(server);
    if (entry === undefined || entry.probe === probe) return;
    entry.probe = probe;
    this.#notifyListeners(server);
  }

  /** Records the detected transport of a server. */
  transportFound(server: string, transport: string): void {
    const entry = this.#servers.get(server);
    if (entry === undefined) return;
    entry.foundTransport = transport;
    this.#notifyListeners(server);
  }

  /** Records an era in which the server has answered. */
  eraSeen(server: string, era: Era): void {
    const entry = this.#servers.get(server);
    if (entry === undefined || entry.seenEra === era) return;
    entry.seenEra = era;
    this.#notifyListeners(server);
  }

  /** The latest outcome of a server; of a view, the worst one of its servers, which `why` and `detail` then name. */
  #lastOf(server: string): Pick<Entry, 'last' | 'details'> | undefined {
    const own = this.#servers.get(server);
    if (own?.members === undefined) return own;
    const members = own.members.flatMap((name) => {
      const entry = this.#servers.get(name);
      return entry?.last === undefined ? [] : [{ name, last: entry.last, details: entry.details }];
    });
    const newestFirst = members.sort((a, b) => b.last.at.getTime() - a.last.at.getTime());
    for (const { name, last, details } of newestFirst) {
      if (last.state === 'failed')
        return {
          last: { ...last, why: `${name}: ${last.why}` },
          details: details && { ...details, detail: `${name}: ${details.detail}` },
        };
    }
    return newestFirst[0] ?? own;
  }

  #recordOutcome(server: string, outcome: ServerOutcome, details?: FailureDetails): void {
    const entry = this.#servers.get(server);
    if (entry === undefined) return; // a session may outlive the configuration of its server
    entry.last = outcome;
    entry.details = details;
    this.#notifyListeners(server);
    for (const [view, { members }] of this.#servers) if (members?.includes(server)) this.#notifyListeners(view);
  }

  #notifyListeners(server: string): void {
    for (const listener of this.#listeners) listener(server);
  }
}
