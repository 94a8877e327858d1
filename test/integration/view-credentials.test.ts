import { expect, onTestFinished, test } from 'vitest';
import { initialize, post, type Session } from '../support/http-client.ts';
import { startIssuer } from '../support/issuer.ts';
import { startLocalGateway } from '../support/local-gateway.ts';
import { callModern } from '../support/modern-client.ts';
import { shownIn, showsVariables } from '../support/shown-variables.ts';
import { clientSecret, startTokenEndpoint } from '../support/token-endpoint.ts';
import { startTokenServer, toldToken } from '../support/token-server.ts';
import { serverEntry, writeViewFile } from '../support/view-file.ts';

const publicUrl = 'https://mcp.example.com';
const headersOf = (user: string) => ({ 'X-Git-Token': `git-of-${user}`, 'X-Crm-Token': `crm-of-${user}` });

/** A view of a process that gets a variable of each user, a remote server that gets a header, and one that gets nothing. */
async function startView(args: readonly string[] = []) {
  const remote = await startTokenServer();
  onTestFinished(() => remote.close());
  const { args: file } = await writeViewFile(
    {
      git: serverEntry(showsVariables, { share: 'user', credentials: { GIT_TOKEN: '{header:X-Git-Token}' } }),
      crm: { url: remote.urls.http, credentials: { Authorization: 'Bearer {header:X-Crm-Token}' }, era: 'legacy' },
      plain: serverEntry(showsVariables, { env: { GIT_TOKEN: 'none' } }),
    },
    { all: { servers: ['*'] } },
  );
  const gateway = await startLocalGateway({ args: [...file, '--log-level', 'trace', ...args] });
  return { gateway, remote, url: `${gateway.baseUrl}/all/mcp` };
}

/** What each server of the view has got, by a way to call it. */
async function seenBy(call: (name: string, args: object) => Promise<unknown>) {
  const shown = async (server: string) => shownIn('GIT_TOKEN', await call(`${server}__show`, { names: ['GIT_TOKEN'] }));
  // biome-ignore lint/suspicious/noExplicitAny: a result of a tool
  const told = (await call('crm__token', {})) as any;
  const [git, plain] = [await shown('git'), await shown('plain')];
  return { git: git.value, crm: toldToken(told.content[0].text), plain: plain.value, pids: [git.pid, plain.pid] };
}

const bySession = (session: Session) => seenBy((name, args) => session.callTool(name, args));

const byModern = (url: string, headers: Record<string, string>) =>
  seenBy(async (name, args) => (await callModern(url, name, args, { headers })).messages.at(-1).result);

const own = (user: string) => ({ git: `git-of-${user}`, crm: `crm-of-${user}`, plain: 'none' });

test.each([
  ['the default', []],
  ['share session', ['--share', 'session']],
  ['share all', ['--share', 'all']],
])('[P11] each user of a view has their own credentials at each server, with %s', async (_, args) => {
  const { url, remote, gateway } = await startView(args);
  const users = ['alice', 'bob'];
  const inSessions = await Promise.all(
    users.map(async (user) => bySession(await initialize(url, { headers: headersOf(user) }))),
  );
  const inRequests = await Promise.all(users.map((user) => byModern(url, headersOf(user))));
  for (const [at, user] of users.entries()) {
    expect(inSessions[at]).toMatchObject(own(user));
    expect(inRequests[at]).toMatchObject(own(user));
  }
  const gitProcesses = [...inSessions, ...inRequests].map(({ pids: [git] }, at) => `${users[at % 2]} ${git}`);
  const pids = new Set(gitProcesses.map((each) => each.split(' ')[1]));
  expect(new Set(gitProcesses).size).toBe(pids.size); // no process is used by two users
  for (const { headers } of remote.seen)
    expect(Object.keys(headers).filter((name) => /^x-git|^:/.test(name))).toEqual([]);
  expect(gateway.stderr()).not.toMatch(/(?:git|crm)-of-/);
});

test('a request without the credentials of one server is refused, and names the header', async () => {
  const { url } = await startView();
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } };
  const { status, json } = await post(
    url,
    { jsonrpc: '2.0', id: 1, method: 'initialize', params },
    { 'X-Git-Token': 'only' },
  );
  expect([status, json.error.data]).toEqual([400, { reason: 'credential_missing', header: 'x-crm-token' }]);
  const twice = await post(
    url,
    { jsonrpc: '2.0', id: 1, method: 'initialize', params },
    { 'X-Crm-Token': ['a', 'b'], 'X-Git-Token': 'c' },
  );
  expect(twice.json.error.data.reason).toBe('duplicate_header');
});

test('a session of one user does not exist for another', async () => {
  const { url } = await startView();
  const session = await initialize(url, { headers: headersOf('alice') });
  const { status, json } = await session.request('tools/list', {}, { headers: { 'X-Git-Token': 'git-of-bob' } });
  expect([status, json.error.data.reason]).toEqual([404, 'unknown_session']);
});

test('[P11] tokens are exchanged for each user of a view', async () => {
  const [issuer, endpoint] = [await startIssuer(), await startTokenEndpoint()];
  const remote = await startTokenServer((token) => endpoint.userOf(token) !== undefined);
  onTestFinished(() => {
    issuer.close();
    endpoint.close();
    remote.close();
  });
  const identity = { grant: 'token_exchange', tokenUrl: endpoint.url, clientId: 'gateway', clientSecret };
  const { args } = await writeViewFile(
    { crm: { url: remote.urls.http, era: 'legacy', identity }, plain: serverEntry(showsVariables) },
    { all: { servers: ['*'] } },
  );
  const gateway = await startLocalGateway({
    args: [...args, '--auth.oauth.issuers', issuer.url, '--public-url', publicUrl],
  });
  const url = `${gateway.baseUrl}/all/mcp`;
  for (const user of ['alice', 'bob']) {
    const token = await issuer.token({ claims: { sub: user, aud: `${publicUrl}/all/mcp` } });
    const headers = { authorization: `Bearer ${token}` };
    const session = await initialize(url, { headers });
    const results = [
      await session.callTool('crm__token'),
      (await callModern(url, 'crm__token', {}, { headers })).messages.at(-1).result,
    ];
    for (const result of results) expect(endpoint.userOf(toldToken(result.content[0].text))).toBe(user);
  }
});
