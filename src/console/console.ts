// The console: the status page and the playground on the admin port.

import type { Logger } from 'pino';
import type { Endpoint, HttpContext } from '../http/http-context.ts';
import type { FindEndpoint } from '../http/router.ts';
import { type SessionName, sessionName } from '../session/session-events.ts';
import { keyFromId } from '../session/session-key.ts';
import type { Changes } from '../store/shared/changes.ts';
import { detach } from '../util/boundary.ts';
import { type AccessPolicy, denyAll } from './access-policy.ts';
import { type About, findConsoleEndpoint } from './console-routes.ts';
import { OperatorActions } from './operator-actions.ts';
import { readAssets } from './page-assets.ts';
import { PageSubscriptions } from './page-subscriptions.ts';
import { type EndpointAddress, relayToEndpoint } from './playground/endpoint-relay.ts';
import { PlaygroundSessions } from './playground/playground-sessions.ts';
import { KnownInstances } from './snapshot/known-instances.ts';
import { SnapshotBuilder, type SnapshotSources } from './snapshot/snapshot-builder.ts';

/** A session that the page can end. */
export interface EndableSession {
  readonly name: SessionName;
  end(reason: 'operator' | 'client_gone'): Promise<void>;
}

/** The parts of the gateway that the status page uses. */
export interface ConsoleParts extends SnapshotSources {
  readonly logger: Logger;
  readonly access: AccessPolicy;
  /** The change announcements between instances; undefined for a single instance. */
  readonly changes: Changes | undefined;
  about(): About;
  endableSessions(): readonly EndableSession[];
  /** Replaces the spare backends of a server. */
  renewSpares(server: string): void;
  /** Drains and ends this instance (P9). */
  drain(): void;
  /** Returns the endpoint address of a server; undefined if there is no such server. */
  addressOf(server: string): EndpointAddress | undefined;
  /** Handles requests of the playground like those of any client. */
  readonly listener: Endpoint;
  /** The reconnect delay that the gateway gives its clients, in milliseconds. */
  readonly retryMs: number;
  onFailed(cause: unknown): void;
}

/** The status page of a gateway. */
export interface StatusPage {
  /**
   * Returns its URL on the admin server; undefined where access is denied to everyone. The URL lacks the start token.
   */
  urlAt(adminUrl: string): string | undefined;
  /** Finds the endpoint at one of its paths. */
  readonly at: FindEndpoint;
  close(): Promise<void>;
}

/** The time that a page may reconnect later than the delay says, for a changed network or a reopened tunnel. */
const awayMarginMs = 10_000;

/** Creates the status page from its parts (docs/decisions/0044). */
export function createStatusPage(parts: ConsoleParts): StatusPage {
  const { record, logger, access, changes, about, onFailed, drain, listener } = parts;
  const snapshots = new SnapshotBuilder(parts);
  const instances = new KnownInstances({ changes, summary: () => snapshots.summary(), onFailed });
  const { tap, events } = record;
  const subscriptions = new PageSubscriptions({
    tap,
    events,
    snapshot: (search) => snapshots.snapshot(search, instances),
    session: (watched) => snapshots.session(watched),
  });
  const endSession = ({ server, session }: SessionName, reason: 'operator' | 'client_gone'): boolean => {
    const found = parts.endableSessions().find(({ name }) => name.server === server && name.session === session);
    detach('admin', found?.end(reason));
    return found !== undefined;
  };
  const playgroundSessions = new PlaygroundSessions({
    awayMs: parts.retryMs + awayMarginMs,
    onGone: (name) => {
      endSession(name, 'client_gone');
    },
  });
  const actions = new OperatorActions({
    logger,
    drain,
    endSession: (server, session) => endSession({ server, session }, 'operator'),
    restartServer: (server) => {
      if (!parts.servers().some(({ name }) => name === server)) return undefined;
      parts.renewSpares(server);
      return record.backends.restart(server);
    },
  });
  const relay = (server: string, context: HttpContext): boolean => {
    const { incoming, outgoing } = context;
    const address = parts.addressOf(server);
    if (address === undefined) return false;
    const id = incoming.headers['mcp-session-id'];
    if (typeof id === 'string') playgroundSessions.trackRequest(sessionName(keyFromId(id), server), outgoing);
    relayToEndpoint(incoming, address);
    listener(context);
    return true;
  };
  return {
    urlAt: (adminUrl) => (access === denyAll ? undefined : `${adminUrl}/`),
    at: findConsoleEndpoint({ assets: readAssets(), access, subscriptions, actions, about, relay }),
    async close() {
      subscriptions.close();
      playgroundSessions.close();
      await instances.close();
    },
  };
}
