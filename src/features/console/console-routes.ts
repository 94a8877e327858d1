import type { IncomingMessage, ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import {
  type Asset,
  type History,
  type HistoryRange,
  historyRanges,
  isSessionOrder,
  type OperatorActions,
  type PageSubscription,
  type PageSubscriptions,
} from '@mcp-gangway/console';
import type { HttpContext } from '../../core/http/http-context.ts';
import { respondWithJson, sendHead } from '../../core/http/respond.ts';
import { type App, asHandler, refuseMethod } from '../../core/http/router.ts';
import type { Era, Revision } from '../../core/protocol/revisions.ts';
import type { AccessPolicy, ConsoleScope } from './access-policy.ts';

/** The facts that the page loads once. */
export interface About {
  /** The URLs at which clients reach the servers, and whether a client may send a server its own token. */
  readonly servers: readonly { readonly name: string; readonly url: string; readonly takesTokens: boolean }[];
  /** True if clients must authenticate. */
  readonly needsToken: boolean;
  /** The revisions of the requests that the page sends, by their era. */
  readonly revisions: Readonly<Record<Era, Pick<Revision, 'name' | 'headers'>>>;
  /** True if the page shows the contents of messages. */
  readonly inspects: boolean;
  /** The pages of the documentation to which the page links. */
  readonly docs: { readonly page: string; readonly troubleshooting: string; readonly errors: string };
}

/** The actions that the credentials of a page allow. The page does not offer the others. */
interface AllowedActions {
  readonly sessions: boolean;
  readonly drain: boolean;
}

/** The parts that the routes use. */
export interface ConsoleRoutes {
  /** Reads the files of the page, by name. Called at the first request for one. */
  readAssets(): ReadonlyMap<string, Asset>;
  readonly access: AccessPolicy;
  readonly subscriptions: PageSubscriptions;
  readonly history: History;
  readonly actions: OperatorActions;
  about(): About;
  /** Relays a request of the playground to the endpoint of a server; false if there is no such server. */
  relay(server: string, context: HttpContext): boolean;
}

/**
 * A header that proves that the page itself sends the request. A page of another origin needs permission to send the
 * header (Fetch, CORS-preflight), and the gateway never gives it.
 */
const pageHeader = 'x-gangway-page';

/** The maximum length of a search text. */
const maxSearch = 100;

/** The maximum length of an action request, which has a few short texts. */
const maxActionBytes = 4_096;

/** Returns the scope that a path requires. */
const scopeOf = (path: string): ConsoleScope => {
  if (path === '/status/actions/drain') return 'gangway:drain';
  return path.startsWith('/status/actions/') ? 'gangway:sessions' : 'gangway:status';
};

/** Answers a request to a path of the page after access is granted. */
type Answer = (context: HttpContext, path: string) => void | Promise<void>;

/**
 * Adds the endpoints of the status page: its files, its data and its actions (docs/decisions/0044). All except the
 * files require the page header and the access policy.
 */
export function addConsoleRoutes(
  app: App,
  { readAssets, access, subscriptions, history, actions, about, relay }: ConsoleRoutes,
): void {
  let files: ReadonlyMap<string, Asset> | undefined;
  const sendFile: Answer = (context, path) => {
    // Fifty files would make the start longer, and most gateways never show their page.
    files ??= new Map([...readAssets()].map(([name, asset]) => [pathOfAsset(name), asset]));
    const file = files.get(path);
    if (file === undefined) context.respondWithFault('no_such_admin_path');
    else sendAsset(file, context);
  };

  /** Requires the page header and access for the scope of the path. */
  const guard = (answer: Answer, isForHead = false) =>
    asHandler(async (context, path) => {
      const { incoming, outgoing, method } = context;
      if (method === 'HEAD' && !isForHead) return refuseMethod(context, ['GET']); // an open stream would be for nobody
      if (incoming.headers[pageHeader] === undefined)
        return sendJson(outgoing, 403, {
          message: `Only the status page may send this request, with the header ${pageHeader}: 1.`,
        });
      const refusal = await access(incoming, scopeOf(path));
      if (refusal !== undefined)
        return sendJson(outgoing, refusal.status, { message: refusal.message, asksFor: refusal.asksFor });
      return answer(context, path);
    });

  const streamEvents: Answer = (context) => {
    const { outgoing } = context;
    if (subscriptions.isFull) return sendJson(outgoing, 503, { message: 'Too many status pages are open. Close one.' });
    sendHead(outgoing, 200, {
      'content-type': 'text/event-stream',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
    });
    subscriptions.add(outgoing, readSubscription(context));
  };
  const runAction: Answer = async ({ incoming, outgoing }, path) => {
    const parameters = await readParameters(incoming);
    if (parameters === undefined) return sendJson(outgoing, 400, { message: 'The body of the request is not valid.' });
    const { isDone, ...outcome } = await actions.run(path.slice(actionPath.length), parameters);
    sendJson(outgoing, isDone ? 200 : 404, outcome);
  };
  const relayRequest: Answer = (context, path) => {
    if (!relay(path.slice(playPath.length), context)) context.respondWithFault('no_such_admin_path');
  };
  const sendHistory: Answer = ({ outgoing, url, path }) => {
    const { range, after } = readHistoryQuery(url.slice(path.length));
    sendJson(outgoing, 200, history.after(range, after));
  };
  const allowedActions = async (incoming: IncomingMessage): Promise<AllowedActions> => ({
    sessions: (await access(incoming, 'gangway:sessions')) === undefined,
    drain: (await access(incoming, 'gangway:drain')) === undefined,
  });
  const sendAbout: Answer = async ({ incoming, outgoing }) =>
    sendJson(outgoing, 200, { ...about(), allows: await allowedActions(incoming) });

  app.get('/', asHandler(sendFile));
  app.get('/page/*', asHandler(sendFile));
  app.get('/status/about', guard(sendAbout));
  app.get('/status/history', guard(sendHistory));
  app.get('/status/events', guard(streamEvents));
  app.post(`${actionPath}*`, guard(runAction));
  // The endpoint of the server decides which methods it accepts.
  app.all(`${playPath}*`, guard(relayRequest, true));
}

const actionPath = '/status/actions/';
const playPath = '/status/play/';

const pathOfAsset = (name: string): string => (name === 'index.html' ? '/' : `/page/${name}`);

/** Sends a file of the page, or 304 if the browser has it. */
function sendAsset({ body, headers }: Asset, { incoming, outgoing }: HttpContext): void {
  if (incoming.headers['if-none-match'] === headers['etag']) sendHead(outgoing, 304, headers).end();
  else sendHead(outgoing, 200, { ...headers, 'content-length': body.length }).end(body);
}

function sendJson(outgoing: ServerResponse, status: number, value: object): void {
  respondWithJson(outgoing, status, JSON.stringify(value), { 'cache-control': 'no-store' });
}

/** Reads the range and the newest step that the page has; -1 if it has none. */
function readHistoryQuery(query: string): { readonly range: HistoryRange; readonly after: number } {
  const parameters = new URLSearchParams(query);
  const range = parameters.get('range') ?? '';
  const after = Number(parameters.get('after') ?? -1);
  return { range: isRange(range) ? range : '5m', after: Number.isSafeInteger(after) ? after : -1 };
}

const isRange = (text: string): text is HistoryRange => Object.hasOwn(historyRanges, text);

function readSubscription({ url, path }: HttpContext): PageSubscription {
  const query = new URLSearchParams(url.slice(path.length));
  const server = query.get('server') ?? '';
  const session = query.get('session') ?? '';
  const watched = server === '' ? undefined : { server, ...(session !== '' && { session }) };
  const page = Number(query.get('page'));
  const order = query.get('order') ?? '';
  return {
    search: (query.get('search') ?? '').slice(0, maxSearch),
    page: Number.isSafeInteger(page) && page > 0 ? page : 0,
    isEverywhere: query.get('everywhere') === '1',
    order: isSessionOrder(order) ? order : undefined,
    isFailedOnly: query.get('failed') === '1',
    of: query.get('of') || undefined,
    watched,
  };
}

/** Reads the body of an action request: an object of texts. Returns undefined for anything else. */
async function readParameters(incoming: IncomingMessage): Promise<Readonly<Record<string, unknown>> | undefined> {
  const length = incoming.headers['content-length'];
  if (length === undefined || Number(length) > maxActionBytes) return undefined;
  const parameters: unknown = await json(incoming).catch(() => undefined);
  return typeof parameters === 'object' && parameters !== null ? (parameters as Record<string, unknown>) : undefined;
}
