import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import type { HttpApp } from '../../http/app.ts';
import type { Endpoint } from '../../http/endpoint.ts';
import type { Changes } from '../../store/changes.ts';
import { StatusActions } from './actions.ts';
import { readAssets } from './assets.ts';
import type { Door } from './door.ts';
import { Instances } from './instances.ts';
import { Look, type LookParts } from './look.ts';
import { readdress } from './relay.ts';
import { type About, addStatusPage } from './routes.ts';
import { Viewers } from './viewers.ts';

/** A session as the page can end it. */
export interface EndableSession {
  readonly name: { readonly server: string; readonly session: string };
  end(reason: 'operator'): Promise<void>;
}

/** What the status page stands on. */
export interface StatusPageParts extends LookParts {
  readonly logger: Logger;
  readonly door: Door;
  /** What instances tell each other; undefined if there is one alone. */
  readonly changes: Changes | undefined;
  about(): About;
  endableSessions(): readonly EndableSession[];
  /** Ends the spares of a server, for new ones. */
  renewSpares(server: string): void;
  /** Ends this instance in order (P9). */
  drain(): void;
  /** Where a server's clients reach it: the endpoint, its path, and a name by which it may be called. */
  endpointOf(server: string): { readonly endpoint: Endpoint; readonly path: string; readonly host: string } | undefined;
  onFailed(cause: unknown): void;
}

/** The status page of a gateway. */
export interface StatusPage {
  addTo(app: HttpApp): void;
  close(): Promise<void>;
}

/** Puts the status page together (docs/decisions/0044). */
export function createStatusPage(parts: StatusPageParts): StatusPage {
  const { record, logger, door, changes, about, onFailed, drain } = parts;
  const look = new Look(parts);
  const instances = new Instances({ changes, summary: () => look.summary(), onFailed });
  const { flow, happenings } = record;
  const viewers = new Viewers({ flow, happenings, snapshot: (search) => look.snapshot(search, instances) });
  const actions = new StatusActions({
    logger,
    drain,
    endSession: (server, session) => {
      const found = parts.endableSessions().find(({ name }) => name.server === server && name.session === session);
      void found?.end('operator');
      return found !== undefined;
    },
    restartServer: (server) => {
      if (!parts.servers().some(({ name }) => name === server)) return undefined;
      parts.renewSpares(server);
      return record.backends.restart(server);
    },
  });
  const relay = (server: string, incoming: IncomingMessage, outgoing: ServerResponse): boolean => {
    const found = parts.endpointOf(server);
    if (found === undefined) return false;
    readdress(incoming, found.path, found.host);
    found.endpoint(incoming, outgoing);
    return true;
  };
  return {
    addTo: (app) => addStatusPage(app, { assets: readAssets(), door, viewers, actions, about, relay }),
    async close() {
      viewers.close();
      await instances.close();
    },
  };
}
