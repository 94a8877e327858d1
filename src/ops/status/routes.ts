import type { IncomingMessage, ServerResponse } from 'node:http';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import type { Context } from 'hono';
import type { HttpApp } from '../../http/app.ts';
import type { StatusActions } from './actions.ts';
import type { Asset } from './assets.ts';
import type { Door, StatusScope } from './door.ts';
import type { Viewers, Wish } from './viewers.ts';

/** What the page is told once. */
export interface About {
  /** Where clients reach the servers. */
  readonly servers: readonly { readonly name: string; readonly url: string }[];
  /** True if they have to show who they are. */
  readonly needsToken: boolean;
  /** True if contents of messages are shown. */
  readonly inspects: boolean;
}

/** What the routes of the page stand on. */
export interface StatusRoutes {
  readonly assets: ReadonlyMap<string, Asset>;
  readonly door: Door;
  readonly viewers: Viewers;
  readonly actions: StatusActions;
  about(): About;
  /** Passes a request of the playground on to the endpoint of a server; false if there is no such server. */
  relay(server: string, incoming: IncomingMessage, outgoing: ServerResponse): boolean;
}

type C = Context<{ Bindings: { incoming: IncomingMessage; outgoing: ServerResponse } }>;

/**
 * A page of another origin cannot send it unless it is allowed to first (Fetch, CORS-preflight), and nobody allows it: so it
 * shows that the page itself asks, whatever a browser lets others do.
 */
const pageHeader = 'x-gangway-page';

/** A longer one is of no use to anybody. */
const maxSearch = 100;

/** An action says what it is for in a few words. */
const maxActionBytes = 4_096;

/** What actions need; seeing is what all else needs. */
const scopeOf = (path: string): StatusScope => {
  if (path === '/status/actions/drain') return 'gangway:drain';
  return path.startsWith('/status/actions/') ? 'gangway:sessions' : 'gangway:status';
};

/** The status page, what it is told, and what it can do (docs/decisions/0044). */
export function addStatusPage(app: HttpApp, { assets, door, viewers, actions, about, relay }: StatusRoutes): void {
  const serve = (c: C, name: string): Response | Promise<Response> => {
    const asset = assets.get(name);
    if (asset === undefined) return c.notFound();
    const { body, headers } = asset;
    if (c.req.header('if-none-match') === headers['etag']) return c.body(null, 304, headers);
    return c.body(new Uint8Array(body), 200, headers);
  };
  app.get('/', (c) => serve(c, 'index.html'));
  app.get('/page/:name', (c) => serve(c, c.req.param('name')));

  app.use('/status/*', async (c, next) => {
    if (c.req.header(pageHeader) === undefined)
      return c.json({ said: `Only the page itself asks this, with ${pageHeader}: 1.` }, 403);
    const refusal = await door(c.env.incoming, scopeOf(c.req.path));
    return refusal === undefined ? next() : c.json({ said: refusal.said }, refusal.status);
  });
  app.get('/status/about', (c) => c.json(about(), 200, { 'cache-control': 'no-store' }));
  app.get('/status/events', (c) => {
    if (viewers.isFull) return c.json({ said: 'As many pages are open as may be. Close one.' }, 503);
    const { outgoing } = c.env;
    outgoing.writeHead(200, {
      'content-type': 'text/event-stream',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
    });
    viewers.add(outgoing, wishOf(c));
    return RESPONSE_ALREADY_SENT;
  });
  app.post('/status/actions/:name', async (c) => {
    const asked = await readAsked(c);
    if (asked === undefined) return c.json({ said: 'The request cannot be read.' }, 400);
    const { isDone, said } = actions.run(c.req.param('name'), asked);
    return c.json({ said }, isDone ? 200 : 404);
  });
  app.all('/status/play/:server', (c) =>
    relay(c.req.param('server'), c.env.incoming, c.env.outgoing) ? RESPONSE_ALREADY_SENT : c.notFound(),
  );
}

function wishOf(c: C): Wish {
  const { search = '', server = '', session = '' } = c.req.query();
  const watched = server === '' ? undefined : { server, ...(session !== '' && { session }) };
  return { search: search.slice(0, maxSearch), watched };
}

/** What an action is asked with: an object of texts. */
async function readAsked(c: C): Promise<Readonly<Record<string, unknown>> | undefined> {
  if (Number(c.req.header('content-length') ?? Number.NaN) > maxActionBytes) return undefined;
  if (c.req.header('content-length') === undefined) return undefined;
  const asked: unknown = await c.req.json().catch(() => undefined);
  return typeof asked === 'object' && asked !== null ? (asked as Record<string, unknown>) : undefined;
}
