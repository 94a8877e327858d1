import type { IncomingMessage, ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import type { Endpoint } from '../http/http-endpoint.ts';
import { endAsInternal, respondWithFault, respondWithJson } from '../http/respond.ts';
import { byMethod, type FindEndpoint, pathOf, readable } from '../http/router.ts';
import { detach } from '../util/boundary.ts';
import type { AccessPolicy, ConsoleScope } from './access-policy.ts';
import type { OperatorActions } from './operator-actions.ts';
import type { Asset } from './page-assets.ts';
import type { PageSubscription, PageSubscriptions } from './page-subscriptions.ts';

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
export interface ConsoleRoutes {
  readonly assets: ReadonlyMap<string, Asset>;
  readonly access: AccessPolicy;
  readonly viewers: PageSubscriptions;
  readonly actions: OperatorActions;
  about(): About;
  /** Passes a request of the playground on to the endpoint of a server; false if there is no such server. */
  relay(server: string, incoming: IncomingMessage, outgoing: ServerResponse): boolean;
}

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
const scopeOf = (path: string): ConsoleScope => {
  if (path === '/status/actions/drain') return 'gangway:drain';
  return path.startsWith('/status/actions/') ? 'gangway:sessions' : 'gangway:status';
};

/** Answers a request to a path of the page, once it is known that it may be asked. */
type Answer = (incoming: IncomingMessage, outgoing: ServerResponse, path: string) => void;

/** Finds the status page, what it is told, and what it can do (docs/decisions/0044). */
export function findConsoleEndpoint({
  assets,
  access: door,
  viewers,
  actions,
  about,
  relay,
}: ConsoleRoutes): FindEndpoint {
  const files = new Map([...assets].map(([name, asset]) => [pathOfAsset(name), readable(serve(asset))]));

  /** Only the page itself asks, and for somebody who may. */
  const guarded = (path: string, answer: Answer): Endpoint => {
    const ask = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
      if (incoming.headers[pageHeader] === undefined)
        return say(outgoing, 403, {
          said: `Only the status page may send this request, with the header ${pageHeader}: 1.`,
        });
      const refusal = await door(incoming, scopeOf(path));
      if (refusal !== undefined) return say(outgoing, refusal.status, { said: refusal.said, asksFor: refusal.asksFor });
      answer(incoming, outgoing, path);
    };
    return (incoming, outgoing) => detach('admin', ask(incoming, outgoing), () => endAsInternal(outgoing));
  };
  const guardedAt = (path: string, methods: Readonly<Record<string, Answer>>): Endpoint =>
    byMethod(Object.fromEntries(Object.entries(methods).map(([name, answer]) => [name, guarded(path, answer)])));

  const tell: Answer = (incoming, outgoing) => {
    if (viewers.isFull) return say(outgoing, 503, { said: 'Too many status pages are open. Close one.' });
    outgoing.writeHead(200, {
      'content-type': 'text/event-stream',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'x-accel-buffering': 'no',
    });
    viewers.add(outgoing, wishOf(incoming));
  };
  const act = async (incoming: IncomingMessage, outgoing: ServerResponse, name: string): Promise<void> => {
    const asked = await readAsked(incoming);
    if (asked === undefined) return say(outgoing, 400, { said: 'The body of the request is not valid.' });
    const { isDone, said } = actions.run(name, asked);
    say(outgoing, isDone ? 200 : 404, { said });
  };
  const play: Answer = (incoming, outgoing, path) => {
    if (!relay(path.slice(playPath.length), incoming, outgoing)) respondWithFault(outgoing, 'no_such_admin_path');
  };
  const aboutPage: Answer = (_incoming, outgoing) => say(outgoing, 200, about());

  return (path) => {
    if (path === '/status/about') return guardedAt(path, { GET: aboutPage });
    if (path === '/status/events') return guardedAt(path, { GET: tell });
    if (path.startsWith(actionPath))
      return guardedAt(path, {
        POST: (incoming, outgoing) =>
          detach('admin', act(incoming, outgoing, path.slice(actionPath.length)), () => endAsInternal(outgoing)),
      });
    // The endpoint says by itself which methods it has.
    if (path.startsWith(playPath)) return guarded(path, play);
    return files.get(path);
  };
}

const actionPath = '/status/actions/';
const playPath = '/status/play/';

const pathOfAsset = (name: string): string => (name === 'index.html' ? '/' : `/page/${name}`);

/** A file of the page; nothing of it if the browser has it already. */
const serve =
  ({ body, headers }: Asset): Endpoint =>
  (incoming, outgoing) => {
    if (incoming.headers['if-none-match'] === headers['etag']) outgoing.writeHead(304, headers).end();
    else outgoing.writeHead(200, { ...headers, 'content-length': body.length }).end(body);
  };

function say(outgoing: ServerResponse, status: number, value: object): void {
  respondWithJson(outgoing, status, JSON.stringify(value), { 'cache-control': 'no-store' });
}

function wishOf({ url = '' }: IncomingMessage): PageSubscription {
  const query = new URLSearchParams(url.slice(pathOf(url).length));
  const server = query.get('server') ?? '';
  const session = query.get('session') ?? '';
  const watched = server === '' ? undefined : { server, ...(session !== '' && { session }) };
  return { search: (query.get('search') ?? '').slice(0, maxSearch), watched };
}

/** What an action is asked with: an object of texts. Undefined for anything else. */
async function readAsked(incoming: IncomingMessage): Promise<Readonly<Record<string, unknown>> | undefined> {
  const length = incoming.headers['content-length'];
  if (length === undefined || Number(length) > maxActionBytes) return undefined;
  const asked: unknown = await json(incoming).catch(() => undefined);
  return typeof asked === 'object' && asked !== null ? (asked as Record<string, unknown>) : undefined;
}
