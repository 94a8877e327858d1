import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { everythingFixture, modernFixture } from '../support/gateway.ts';
import { type Answer, type Exchange, initialize, type Message, open, type Session } from '../support/http-client.ts';
import { modernAnswers, retryWith } from '../support/input-required.ts';
import { type Issuer, startIssuer } from '../support/issuer.ts';
import { keepingFixture } from '../support/keepers.ts';
import { type LocalGateway, startLocalGateway } from '../support/local-gateway.ts';
import { callModern, type ModernOptions, metaKeys, openModern, postModern } from '../support/modern-client.ts';
import { answers } from '../support/sdk-clients.ts';

/** `ada` may do everything; `reader` is the same user and client with fewer scopes; `bob` is another user with all scopes. */
const names = ['ada', 'reader', 'bob'] as const;
type Name = (typeof names)[number];
const rules = ['--defaults.scopes.required', 'use', '--defaults.scopes.tools'];
const toolScopes = ['test_elicitation=ask', 'slow_task=work', 'begin=work', 'update_resource=work'];
const uri = 'test://watched-resource';

let issuer: Issuer;
const tokens = {} as Record<Name, { Authorization: string }>;
beforeAll(async () => {
  issuer = await startIssuer();
  for (const name of names) {
    const claims = { sub: name === 'bob' ? 'bob' : 'ada', scope: name === 'reader' ? 'use' : 'use ask work' };
    tokens[name] = { Authorization: `Bearer ${await issuer.token({ claims })}` };
  }
});
afterAll(() => issuer.close());

/** A gateway whose users share as much as they can. */
async function start(command: readonly string[], ...args: string[]): Promise<LocalGateway> {
  const oauth = ['--auth.oauth.issuers', issuer.url, '--public-url', 'https://mcp.example.com'];
  const scopes = toolScopes.flatMap((rule) => [...rules.slice(-1), rule]);
  return startLocalGateway({
    command,
    args: [...oauth, ...rules.slice(0, 2), ...scopes, ...args],
    isStoppedWithTest: false,
  });
}

const statusOf = async (exchange: Promise<Exchange>): Promise<number> => {
  const { status, drop } = await exchange;
  drop();
  return status;
};
const get = (url: string, session: Session, name: Name): Promise<Exchange> =>
  open(url, { method: 'GET', headers: { ...tokens[name], Accept: 'text/event-stream', 'Mcp-Session-Id': session.id } });
const reasonOf = ({ json }: Answer): unknown => json?.error?.data?.reason;

describe.each([
  ['a legacy server', everythingFixture],
  ['a modern server', modernFixture],
] as const)('%s', (_server, command) => {
  let gateway: LocalGateway;
  beforeAll(async () => {
    gateway = await start(command);
  });
  afterAll(() => gateway.stop());

  test('[A05] [R8.06] a parked call of a modern client goes on with a token of its user that has its scopes, and no other', async () => {
    const meta = { [metaKeys.clientCapabilities]: { elicitation: {} } };
    const asked = await callModern(gateway.url, 'test_elicitation', {}, { meta, headers: tokens.ada });
    const params = retryWith(asked, modernAnswers);
    const retry = (name: Name) =>
      callModern(gateway.url, 'test_elicitation', {}, { meta, params, headers: tokens[name] });
    const refused = await retry('reader');
    expect([refused.status, reasonOf(refused)]).toEqual([403, 'insufficient_scope']);
    if (command === everythingFixture) expect(reasonOf(await retry('bob'))).toBe('bad_request_state');
    const own = await retry('ada');
    expect(own.json.result.content[0].text).toContain('accept');
  });

  test('[S02] [A05] a parked call of a legacy client is answered with a token of its user, and no other', async () => {
    const session = await initialize(gateway.url, { headers: tokens.ada, capabilities: { elicitation: {} } });
    const call = { jsonrpc: '2.0', id: 'c', method: 'tools/call', params: { name: 'test_elicitation', arguments: {} } };
    const calling = await session.send(call);
    const question = await calling.nextMessage(({ method }) => method === 'elicitation/create');
    const result = { action: 'decline' };
    expect(await statusOf(session.send({ jsonrpc: '2.0', id: question.id, result }, tokens.bob))).toBe(404);
    await session.respond(question.id, { action: 'accept', content: answers.elicited });
    const { messages } = await calling.answer();
    expect(messages.at(-1)?.result.content[0].text).toContain('accept');
  });

  test('[S02] [A05] the stream of a legacy client with a subscription is for a token of its user, with the scopes of each request', async () => {
    const session = await initialize(gateway.url, { headers: tokens.ada });
    await session.request('resources/subscribe', { uri });
    expect(await statusOf(get(gateway.url, session, 'bob'))).toBe(404);
    const stream = await session.getStream();
    const isUpdate = ({ method }: Message) => method === 'notifications/resources/updated';
    /** The server tells of an update on the stream of the call or on the GET stream. */
    const expectUpdate = async () => {
      const answer = await session.request('tools/call', { name: 'update_resource', arguments: { uri } });
      const update = answer.messages.find(isUpdate) ?? (await stream.nextMessage(isUpdate));
      expect(update.params.uri).toBe(uri);
    };
    await expectUpdate();
    const call = { name: 'update_resource', arguments: { uri } };
    const refused = await session.request('tools/call', call, { headers: tokens.reader });
    expect([refused.status, reasonOf(refused)]).toEqual([403, 'insufficient_scope']);
    // A narrower token of the same user still sees the session.
    expect(await session.request('resources/list', {}, { headers: tokens.reader })).toMatchObject({ status: 200 });
    await expectUpdate();
    stream.drop();
  });

  test('[P11] a subscription of a modern client needs the scopes of the server, and ends with nobody but its owner', async () => {
    const notifications = { resourceSubscriptions: [uri] };
    const listen = (headers: object) =>
      openModern(gateway.url, 'subscriptions/listen', { notifications }, { id: 'l', headers: { ...headers } });
    const without = { Authorization: `Bearer ${await issuer.token({ claims: { scope: 'work' } })}` };
    expect(await statusOf(listen(without))).toBe(403);
    const [own, others] = [await listen(tokens.ada), await listen(tokens.bob)];
    for (const stream of [own, others]) await stream.nextMessage();
    // Both gave their subscription the same id.
    const cancelled = { requestId: 'l', reason: 'enough' };
    await postModern(gateway.url, 'notifications/cancelled', cancelled, { headers: tokens.bob });
    await callModern(gateway.url, 'update_resource', { uri }, { headers: tokens.ada });
    expect((await own.nextMessage(({ method }) => method === 'notifications/resources/updated')).params.uri).toBe(uri);
    for (const stream of [own, others]) stream.drop();
  });
});

describe('a task of 2025-11-25', () => {
  test.each(['user', 'all'])(
    '[S02] [S-07] is for its user: in its session, and after it for nobody (--share %s)',
    async (share) => {
      await using gateway = await start(everythingFixture, '--share', share);
      const session = await initialize(gateway.url, { headers: tokens.ada });
      const params = { name: 'slow_task', arguments: { ms: 1 }, task: { ttl: 600_000 } };
      const { messages } = await session.request('tools/call', params);
      const taskId = messages[0]?.result.task.taskId as string;
      const about = (method: string, name: Name, of = session) =>
        of.request(method, method === 'tasks/list' ? {} : { taskId }, { headers: tokens[name] });
      for (const method of ['tasks/get', 'tasks/result', 'tasks/cancel', 'tasks/list'])
        expect((await about(method, 'bob')).status).toBe(404);
      expect((await about('tasks/list', 'reader')).text).toContain(taskId);
      expect((await about('tasks/result', 'ada')).text).toContain('worked 1 ms');
      // The process of an ended session can be the one of the next session.
      await session.delete();
      for (const name of ['reader', 'bob'] as const) {
        const next = await initialize(gateway.url, { headers: tokens[name] });
        expect((await about('tasks/list', name, next)).text).not.toContain(taskId);
        expect((await about('tasks/result', name, next)).text).not.toContain('worked');
        await next.delete();
      }
    },
  );
});

describe('a task of 2026-07-28', () => {
  const as = (name: Name): ModernOptions => ({
    headers: tokens[name],
    meta: { [metaKeys.clientCapabilities]: { extensions: { 'io.modelcontextprotocol/tasks': {} } } },
  });

  test.each(['user', 'all'])('[S-07] is for a token of its user with its scopes (--share %s)', async (share) => {
    await using gateway = await start(keepingFixture, '--share', share);
    const { taskId } = (await callModern(gateway.url, 'begin', {}, as('ada'))).json.result;
    const about = (method: string, name: Name) =>
      postModern(gateway.url, method, { taskId }, { ...as(name), headers: { ...tokens[name], 'Mcp-Name': taskId } });
    for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel'])
      for (const name of ['reader', 'bob'] as const) expect((await about(method, name)).json.error.code).toBe(-32602);
    expect((await about('tasks/get', 'ada')).json.result).toMatchObject({ taskId, status: 'working' });
    const listening = await Promise.all(
      names.map((name) =>
        openModern(gateway.url, 'subscriptions/listen', { notifications: { taskIds: [taskId] } }, as(name)),
      ),
    );
    onTestFinished(() => {
      for (const stream of listening) stream.drop();
    });
    const acknowledged = await Promise.all(listening.map((stream) => stream.nextMessage()));
    expect(acknowledged.map(({ params }) => params.notifications.taskIds)).toEqual([[taskId], [], []]);
    await callModern(gateway.url, 'settle', { taskId }, as('ada'));
    expect((await listening[0]?.nextMessage())?.params.taskId).toBe(taskId);
    expect(listening.slice(1).map(({ events }) => events.items.length)).toEqual([1, 1]);
  });
});
