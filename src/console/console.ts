import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import type { FindEndpoint } from '../http/router.ts';
import { keyFromId } from '../session/session-key.ts';
import { type SessionName, sessionName } from '../session/session-observer.ts';
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

/** A session as the page can end it. */
export interface EndableSession {
  readonly name: SessionName;
  end(reason: 'operator' | 'client_gone'): Promise<void>;
}

/** What the status page stands on. */
export interface ConsoleParts extends SnapshotSources {
  readonly logger: Logger;
  readonly access: AccessPolicy;
  /** What instances tell each other; undefined if there is one alone. */
  readonly changes: Changes | undefined;
  about(): About;
  endableSessions(): readonly EndableSession[];
  /** Ends the spares of a server, for new ones. */
  renewSpares(server: string): void;
  /** Ends this instance in order (P9). */
  drain(): void;
  /** Where the clients of a server reach it. */
  placeOf(server: string): EndpointAddress | undefined;
  /** Answers requests of the playground as it answers those of any client. */
  readonly listener: RequestListener;
  /** How long clients are told to wait before they come back, in milliseconds. */
  readonly retryMs: number;
  onFailed(cause: unknown): void;
}

/** The status page of a gateway. */
export interface StatusPage {
  /** Its URL on the admin server with this one; undefined where nobody may see it. Without the word that opens it. */
  urlAt(adminUrl: string): string | undefined;
  /** What is at a path of it. */
  readonly at: FindEndpoint;
  close(): Promise<void>;
}

/** How much later than it was told to a page may come back: for a network that changes, a tunnel that is opened again. */
const awayMarginMs = 10_000;

/** Puts the status page together (docs/decisions/0044). */
export function createStatusPage(parts: ConsoleParts): StatusPage {
  const { record, logger, access: door, changes, about, onFailed, drain, listener } = parts;
  const look = new SnapshotBuilder(parts);
  const instances = new KnownInstances({ changes, summary: () => look.summary(), onFailed });
  const { tap: flow, events: happenings } = record;
  const viewers = new PageSubscriptions({
    tap: flow,
    events: happenings,
    snapshot: (search) => look.snapshot(search, instances),
    session: (watched) => look.session(watched),
  });
  const endSession = ({ server, session }: SessionName, reason: 'operator' | 'client_gone'): boolean => {
    const found = parts.endableSessions().find(({ name }) => name.server === server && name.session === session);
    detach('admin', found?.end(reason));
    return found !== undefined;
  };
  const played = new PlaygroundSessions({
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
  const relay = (server: string, incoming: IncomingMessage, outgoing: ServerResponse): boolean => {
    const place = parts.placeOf(server);
    if (place === undefined) return false;
    const id = incoming.headers['mcp-session-id'];
    if (typeof id === 'string') played.hear(sessionName(keyFromId(id), server), outgoing);
    relayToEndpoint(incoming, place);
    listener(incoming, outgoing);
    return true;
  };
  return {
    urlAt: (adminUrl) => (door === denyAll ? undefined : `${adminUrl}/`),
    at: findConsoleEndpoint({ assets: readAssets(), access: door, viewers, actions, about, relay }),
    async close() {
      viewers.close();
      played.close();
      await instances.close();
    },
  };
}
