import { type Exchange, initialize } from '../support/http-client.ts';
import { openModern } from '../support/modern-client.ts';

const json = { Accept: 'application/json' };
const sse = { Accept: 'text/event-stream' };
const isChange = ({ method }: { readonly method?: string }): boolean => method === 'notifications/tools/list_changed';

/** The time in event ids is the only thing that is not the same for each session. */
const withoutEpoch = (text: string): string => text.replaceAll(/(\b\d{1,4}\.)\d{13}(-\d+)/g, '$1EPOCH$2');

async function textOf(exchange: Promise<Exchange>): Promise<string> {
  const { status, headers, text } = await (await exchange).answer();
  return `${status} ${headers['content-type']}\n${text}`;
}

/** What an honest client of 2025-11-25 sees of a session, byte by byte. */
export async function legacyTranscript(url: string): Promise<string[]> {
  const session = await initialize(url);
  const get = await session.getStream();
  const call = (id: unknown, name: string, args: object, _meta?: object) => ({
    ...{ jsonrpc: '2.0', id, method: 'tools/call' },
    params: { name, arguments: args, ...(_meta && { _meta }) },
  });
  const texts = [JSON.stringify(session.initialized)];
  const keep = async (body: object, accept: object): Promise<void> => {
    texts.push(await textOf(session.send(body, { ...accept })));
  };
  await keep({ jsonrpc: '2.0', id: 1, method: 'tools/list' }, json);
  await keep(call(7, 'echo', { text: 'ünï \u2028 "' }), json);
  await keep(call('7', 'echo', { text: 'on a stream' }), sse);
  await keep(call(2, 'talk', { n: 1 }, { progressToken: 1 }), sse);
  await keep(call(3, 'talk', { n: 2 }, { progressToken: 'constructor' }), sse);
  await keep({ jsonrpc: '2.0', id: '__proto__', method: 'no/such' }, json);
  await keep(call(4, 'announce', {}), json);
  await get.nextMessage(isChange);
  get.drop();
  texts.push(JSON.stringify(get.events.items));
  await session.delete();
  return texts.map(withoutEpoch);
}

/** What an honest client of 2026-07-28 sees, byte by byte. */
export async function modernTranscript(url: string): Promise<string[]> {
  const listen = await openModern(
    url,
    'subscriptions/listen',
    { notifications: { toolsListChanged: true } },
    { id: 'sub' },
  );
  await listen.nextMessage(({ method }) => method === 'notifications/subscriptions/acknowledged');
  const texts: string[] = [];
  const keep = async (id: unknown, method: string, params: Record<string, unknown>, more: object): Promise<void> => {
    texts.push(await textOf(openModern(url, method, params, { id, ...more })));
  };
  await keep(1, 'tools/list', {}, { headers: json });
  await keep(7, 'tools/call', { name: 'echo', arguments: { text: 'ünï \u2028 "' } }, { headers: json });
  await keep('7', 'tools/call', { name: 'echo', arguments: { text: 'on a stream' } }, { headers: sse });
  await keep(2, 'tools/call', { name: 'talk', arguments: {} }, { headers: sse, meta: { progressToken: 1 } });
  await keep(
    3,
    'tools/call',
    { name: 'talk', arguments: {} },
    { headers: sse, meta: { progressToken: 'constructor' } },
  );
  await keep('__proto__', 'no/such', {}, {});
  await keep(4, 'tools/call', { name: 'announce', arguments: {} }, {});
  await listen.nextMessage(isChange);
  listen.drop();
  return [...texts, JSON.stringify(listen.events.items)];
}
