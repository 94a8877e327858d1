import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type ChangingFile, changingFile } from '../support/changing-file.ts';
import { everythingFixture, type Gateway, modernFixture, root, startGateway } from '../support/gateway.ts';
import { initialize, post, type Session } from '../support/http-client.ts';
import { startIssuer } from '../support/issuer.ts';
import { scrape } from '../support/metrics.ts';
import { callModern } from '../support/modern-client.ts';
import { waitForDescendants } from '../support/processes.ts';
import { findFreePort } from '../support/redis-process.ts';
import { showsVariables, variableOf } from '../support/shown-variables.ts';
import { waitFor } from '../support/wait-for.ts';
import { connectWebSocket, webSocketUrlOf } from '../support/websocket-client.ts';

const [node, ...everythingArgs] = everythingFixture;
const everything = { command: node, args: everythingArgs };
const [, ...variableArgs] = showsVariables;
const mini = { command: node, args: [`${root}test/fixtures/children/mini-server.mjs`] };

/** A server that shows what it was configured with. */
const showing = (VALUE: string) => ({ command: node, args: variableArgs, env: { VALUE } });

const textOf = (mcpServers: object, options: object = {}): string => JSON.stringify({ ...options, mcpServers });

const initializeBody = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
};

interface Started {
  readonly file: ChangingFile;
  readonly gateway: Gateway;
  urlOf(server: string): string;
  /** Writes the file and resolves with the line that tells what came of it. */
  change(mcpServers: object, options?: object): Promise<Record<string, unknown>>;
}

/** Lines of the log that say what came of reading the configuration again. */
const outcomes = /^(reloaded the configuration|the changed configuration )/;

async function start(mcpServers: object, options: object = {}, adminPort = 0): Promise<Started> {
  const file = await changingFile('gangway.json', textOf(mcpServers, options));
  const gateway = await startGateway({ adminPort, args: ['--config', file.path] });
  const told = () => gateway.logs().filter(({ msg }) => outcomes.test(String(msg)));
  return {
    file,
    gateway,
    urlOf: (server) => `${gateway.baseUrl}/${server}/mcp`,
    async change(next, nextOptions = options) {
      const before = told().length;
      await file.write(textOf(next, nextOptions));
      await waitFor(() => told().length > before, { what: 'the file to be read again' });
      return told().at(-1) ?? {};
    },
  };
}

/** Runs a command of the program, and resolves with what it prints. */
const command = async (...args: string[]): Promise<string> =>
  (await promisify(execFile)(node ?? '', [`${root}dist/main.js`, ...args])).stdout;

describe('a server that is added by a command', () => {
  it('is served by the running gateway, until another command removes it', async () => {
    const { gateway, file, urlOf } = await start({ own: everything });
    const told = () => gateway.logs().filter(({ msg }) => outcomes.test(String(msg))).length;
    expect(await command('add', 'mini', '--config', file.path, '--', ...[mini.command ?? '', ...mini.args])).toContain(
      'Added mini',
    );
    await waitFor(() => told() === 1, { what: 'the new folder to be read' });
    expect((await post(urlOf('mini'), initializeBody)).status).toBe(200);
    expect(await command('list', '--config', file.path)).toMatch(/^own .*\nmini .*servers\.d/);
    await command('remove', 'mini', '--config', file.path);
    await waitFor(() => told() === 2, { what: 'the emptied folder to be read' });
    const isGone = async (): Promise<boolean> => (await post(urlOf('mini'), initializeBody)).status === 404;
    await waitFor(isGone, { what: 'the endpoint to end with its sessions' });
  });
});

describe('a changed file', () => {
  it('adds, changes and removes servers; sessions of others go on, those of a changed one keep what they have', async () => {
    const { urlOf, change } = await start({ kept: everything, changed: showing('old'), removed: mini });
    const kept = await initialize(urlOf('kept'));
    const changed = await initialize(urlOf('changed'));
    const removed = await initialize(urlOf('removed'));
    const before = await variableOf(changed, 'VALUE');
    const marker = { progressToken: 'kept' };
    const call = kept.callTool('progress', { count: 20, gapMs: 100, marker: 'through' }, marker);

    expect(await change({ kept: everything, changed: showing('new'), added: mini })).toMatchObject({
      ...{ added: ['added'], changed: ['changed'], removed: ['removed'] },
      urls: { added: [urlOf('added')], changed: [urlOf('changed')], removed: [urlOf('removed')] },
    });

    expect((await call).content[0].text).toBe('through');
    expect((await kept.request('ping')).status).toBe(200);
    expect(await variableOf(changed, 'VALUE')).toEqual(before);
    expect((await variableOf(await initialize(urlOf('changed')), 'VALUE')).value).toBe('new');
    expect((await initialize(urlOf('added'))).initialized.serverInfo.name).toBe('mini');
    await waitFor(async () => (await removed.request('ping')).status === 404, { what: 'the end of the removed one' });
    await waitFor(async () => (await post(urlOf('removed'), initializeBody)).status === 404);
  });

  it('has the processes of a server that was taken out ended, after what they were doing', async () => {
    const { gateway, urlOf, change } = await start({ kept: mini, removed: { ...everything, warm: 1 } });
    const session = await initialize(urlOf('removed'));
    const call = session.send({
      ...{ jsonrpc: '2.0', id: 'last', method: 'tools/call' },
      params: { name: 'progress', arguments: { count: 10, gapMs: 150, marker: 'done' }, _meta: { progressToken: 1 } },
    });
    await (await call).nextMessage();
    await change({ kept: mini });
    expect((await post(urlOf('removed'), initializeBody)).json.error.data.reason).toBe('server_reconfigured');
    const { messages } = await (await call).answer();
    expect(messages.at(-1)).toMatchObject({ id: 'last', result: { content: [{ text: 'done' }] } });
    await waitFor(async () => (await gateway.descendants()).length === 0, { what: 'the end of its processes' });
    await waitFor(async () => (await post(urlOf('removed'), initializeBody)).json.error.data.reason === 'no_such_path');
    expect((await post(urlOf('removed'), initializeBody)).json.error.message).toContain(
      'The server may have been removed',
    );
  });

  it('ends sessions of a changed server after the longest time of a request, and clients open new ones', async () => {
    const { urlOf, change } = await start(
      { one: showing('old'), two: mini },
      { timeouts: { requestIdle: '500ms', requestTotal: '500ms' } },
    );
    const session = await initialize(urlOf('one'));
    await change({ one: showing('new'), two: mini });
    await waitFor(async () => (await session.request('ping')).status === 404, { what: 'the end of the session' });
    expect((await variableOf(await initialize(urlOf('one')), 'VALUE')).value).toBe('new');
  });

  it('closes WebSockets of a changed server when their time is up, for their clients to connect again', async () => {
    const { urlOf, change } = await start(
      { one: showing('old'), two: mini },
      { timeouts: { requestIdle: '500ms', requestTotal: '500ms' } },
    );
    const client = await connectWebSocket(webSocketUrlOf(urlOf('one')));
    await client.initialize();
    await change({ one: showing('new'), two: mini });
    expect(await client.closed()).toEqual({ code: 1012, reason: 'server_reconfigured' });
    const again = await connectWebSocket(webSocketUrlOf(urlOf('one')));
    expect(await again.initialize()).toHaveProperty('result');
  });

  it('[P8] keeps a server as it was for the last eight changes, and no more', async () => {
    const { gateway, urlOf, change } = await start({ one: showing('0'), two: mini });
    const sessions: Session[] = [];
    for (let version = 0; version < 10; version++) {
      sessions.push(await initialize(urlOf('one')));
      await change({ one: showing(`${version + 1}`), two: mini });
    }
    const statuses = () => Promise.all(sessions.map(async (session) => (await session.request('ping')).status));
    const kept = [404, 404, ...Array.from({ length: 8 }, () => 200)];
    await waitFor(async () => String(await statuses()) === String(kept), { what: 'the oldest two to end' });
    await waitForDescendants(gateway.pid, 8);
  });

  it('gives clients of the modern era the new process at once', async () => {
    const [program, ...args] = modernFixture;
    const server = (VALUE: string) => ({ command: program, args, env: { VALUE }, era: 'modern' });
    const { gateway, urlOf, change } = await start({ modern: server('old'), other: mini });
    const pidOf = async () => (await callModern(urlOf('modern'), 'echo', { message: 'x' })).status;
    expect(await pidOf()).toBe(200);
    const [before] = await gateway.descendants();
    await change({ modern: server('new'), other: mini });
    expect(await pidOf()).toBe(200);
    await waitFor(async () => !(await gateway.descendants()).some(({ pid }) => pid === before?.pid), {
      what: 'the end of the process before',
    });
  });

  it('leaves a server that was the only one where its clients know it', async () => {
    const { gateway, urlOf, change } = await start({ first: everything });
    expect(gateway.stdout()).toContain(`Ready: ${gateway.url}  (also /first/mcp,`);
    const session = await initialize(gateway.url);
    const second = { added: [urlOf('second')], changed: [], removed: [] };
    expect(await change({ first: everything, second: mini })).toMatchObject({ urls: second });
    expect((await session.request('ping')).status).toBe(200);
    expect((await initialize(gateway.url)).initialized.serverInfo.name).toBe('everything-fixture');
    expect((await initialize(urlOf('second'))).initialized.serverInfo.name).toBe('mini');
    // The one that is left has the path without a name, which led to the other one.
    expect(await change({ second: mini })).toMatchObject({
      ...{ added: [], changed: [], removed: ['first'] },
      urls: { added: [], changed: [gateway.url], removed: [urlOf('first')] },
    });
    expect((await initialize(gateway.url)).initialized.serverInfo.name).toBe('mini');
  });

  it('ends all sessions of a removed server, those of what it was before a change too', async () => {
    const { change, urlOf } = await start({ kept: mini, other: showing('old') });
    const old = await initialize(urlOf('other'));
    await change({ kept: mini, other: showing('new') });
    const newer = await initialize(urlOf('other'));
    await change({ kept: mini });
    for (const session of [old, newer])
      await waitFor(async () => (await session.request('ping')).status === 404, { what: 'the end of a session' });
    await waitFor(async () => (await post(urlOf('other'), initializeBody)).json.error.data.reason === 'no_such_path');
  });

  it.each<[string, string, RegExp[]]>([
    ['that is no JSON', '{"mcpServers": {', [/is not valid JSON/]],
    ['with two faults', textOf({ a: { command: '' }, b: { url: 'nowhere' } }), [/mcpServers\.a/, /mcpServers\.b/]],
    ['that is empty', '', [/is not valid JSON/]],
  ])('%s changes nothing, and all its faults are told', async (_, text, faults) => {
    const { file, gateway, change, urlOf } = await start({ one: mini, two: mini });
    const session = await initialize(urlOf('one'));
    await file.write(text);
    const refusal = await waitFor(() =>
      gateway.logs().find(({ msg }) => String(msg).includes('the previous configuration stays in use')),
    );
    expect(refusal['faults']).toEqual(faults.map((fault) => expect.stringMatching(fault)));
    expect((await session.request('ping')).status).toBe(200);
    expect((await post(urlOf('two'), initializeBody)).status).toBe(200);
    expect(await change({ one: mini })).toMatchObject({ removed: ['two'] });
  });

  it('is a metric: whether the newest one is in use, and since when', async () => {
    const adminPort = await findFreePort();
    const { change } = await start({ one: mini }, {}, adminPort);
    const reload = async () => {
      const { value } = await scrape(adminPort);
      const name = 'mcp_gangway_config_last_reload_success';
      return { isSuccessful: value(`${name}ful`), atS: value(`${name}_timestamp_seconds`) ?? 0 };
    };
    const started = await reload();
    expect(started.isSuccessful).toBe(1);
    expect(Math.abs(started.atS - Date.now() / 1_000)).toBeLessThan(60);

    const unusable: [object, object?][] = [
      [{ one: {} }],
      [{ one: { url: 'https://127.0.0.1:9/mcp', tls: { ca: '/no/such/file.pem' } } }],
      [{ one: mini, two: mini }, { auth: { apiKeysFile: '/no/such/keys.json' } }],
    ];
    for (const [servers, options] of unusable) {
      await change(servers, options);
      expect(await reload()).toEqual({ isSuccessful: 0, atS: started.atS });
    }

    await change({ one: mini });
    const after = await reload();
    expect(after.isSuccessful).toBe(1);
    expect(after.atS).toBeGreaterThan(started.atS);
  });

  it('[E-01] that is refused leaves the health of its servers as it was', async () => {
    const tickets = {
      url: 'http://127.0.0.1:9/mcp',
      transport: 'http',
      probes: { every: '1h', required: true },
      timeouts: { start: '500ms' },
    };
    const { gateway, change } = await start({ tickets, other: mini });
    const ready = async () => (await fetch(`${gateway.baseUrl}/readyz`)).status;
    await waitFor(async () => (await ready()) === 503, { what: 'the first probe' });
    const refused = { ...tickets, probes: { every: '1h', required: false } };
    const broken = { ...mini, command: undefined, url: 'https://127.0.0.1:9/mcp', tls: { ca: '/no/such/file.pem' } };
    expect(await change({ tickets: refused, other: { ...broken, args: undefined }, third: mini })).toMatchObject({
      msg: expect.stringContaining('cannot be used'),
    });
    expect(await ready()).toBe(503);
    expect(await change({ other: mini })).toMatchObject({ removed: ['tickets'] });
    expect(await ready()).toBe(200);
  });

  it('with a server that cannot be used changes nothing', async () => {
    const { change, urlOf } = await start({ one: mini, two: mini });
    const unusable = { url: 'https://127.0.0.1:9/mcp', tls: { ca: '/no/such/file.pem' } };
    expect(await change({ one: showing('x'), three: unusable })).toMatchObject({
      ...{ level: 'error', detail: expect.stringContaining('--defaults.tls.ca') },
    });
    for (const server of ['one', 'two'])
      expect((await initialize(urlOf(server))).initialized.serverInfo.name).toBe('mini');
  });

  it('says which options take effect at the next start', async () => {
    const { gateway, change } = await start({ one: mini, two: mini });
    expect(
      await change({ one: mini }, { limits: { total: { sessions: 3 } }, sse: { reconnectDelay: '1ms' } }),
    ).toMatchObject({ removed: ['two'] });
    const warning = gateway.logs().find(({ msg }) => msg === 'these changed options take effect after a restart');
    expect(warning?.['options']).toEqual([
      expect.stringMatching(/\.json:\d+:\d+: limits\.total\.sessions$/),
      expect.stringMatching(/\.json:\d+:\d+: sse\.reconnectDelay$/),
    ]);
  });

  it('changes the levels of the log at once, those of single parts too', async () => {
    const telling = { command: node, args: ['-e', `console.error('hello'); import('${mini.args[0]}')`] };
    const servers = { one: telling, two: mini };
    const { gateway, change, urlOf } = await start(servers);
    const saying = (msg: string) => gateway.logs().filter((line) => line['msg'] === msg);
    const told = (msg: string, count: number) =>
      waitFor(() => saying(msg).length === count, { what: `${msg}, ${count} times` });
    await initialize(urlOf('one'));
    await told('session started', 1);
    expect([saying('request'), saying('server wrote to stderr')]).toEqual([[], []]);

    await change(servers, { observe: { logLevel: 'info,session=warn,http=debug,stderr=debug' } });
    const { headers } = await post(urlOf('one'), initializeBody);
    await told('request', 1);
    await told('server wrote to stderr', 1);
    expect(saying('request')).toMatchObject([{ requestId: headers['x-request-id'] }]);
    expect(saying('server wrote to stderr')).toMatchObject([{ server: 'one', stderr: 'hello' }]);
    expect(saying('session started')).toHaveLength(1);

    await change(servers, {});
    await initialize(urlOf('one'));
    expect((await post(urlOf('one'), initializeBody)).headers).not.toHaveProperty('x-request-id');
    await told('session started', 3);
    expect([saying('request'), saying('server wrote to stderr')].map(({ length }) => length)).toEqual([1, 1]);
    expect(saying('these changed options take effect after a restart')).toEqual([]);
  });

  it('[S03] that changes who may use servers opens none of them before a start', async () => {
    const { change, urlOf } = await start({ one: mini, two: mini });
    const keys = await changingFile('keys.json', '[]');
    expect(await change({ one: mini, secret: mini }, { auth: { apiKeysFile: keys.path } })).toMatchObject({
      ...{ level: 'error', options: [expect.stringMatching(/\.json:\d+:\d+: auth\.apiKeysFile$/)] },
    });
    expect((await post(urlOf('secret'), initializeBody)).status).toBe(404);
    expect((await post(urlOf('two'), initializeBody)).status).toBe(200);
  });
});

describe('SIGHUP', () => {
  it('reads the configuration again, where there is a file', async () => {
    const { gateway, file } = await start({ one: mini, two: mini });
    process.kill(gateway.pid, 'SIGHUP');
    await waitFor(() => gateway.logs().some(({ msg }) => String(msg).includes('its servers are unchanged')));
    await file.write(textOf({ one: mini }));
    process.kill(gateway.pid, 'SIGHUP');
    await waitFor(() => gateway.logs().some(({ removed }) => String(removed) === 'two'));
  });

  it('ends no gateway that has nothing to read again', async () => {
    const gateway = await startGateway({ command: everythingFixture });
    const session = await initialize(gateway.url);
    process.kill(gateway.pid, 'SIGHUP');
    await waitFor(() => gateway.logs().some(({ msg }) => String(msg).includes('its servers are unchanged')));
    expect((await session.request('ping')).status).toBe(200);
  });
});

it('an end in order does not wait for sessions of a changed server that may go on', async () => {
  const { gateway, urlOf, change } = await start({ one: showing('old'), two: mini });
  const session = await initialize(urlOf('one'));
  await change({ one: showing('new'), two: mini });
  expect((await session.request('ping')).status).toBe(200);
  const startedAt = performance.now();
  expect(await gateway.stop()).toMatchObject({ code: 0 });
  expect(performance.now() - startedAt).toBeLessThan(15_000);
});

it('the OAuth metadata of a path is that of the server that has the path now', async () => {
  const issuer = await startIssuer();
  onTestFinished(() => issuer.close());
  const withScope = (scope: string) => ({ ...everything, scopes: { required: [scope] } });
  const file = await changingFile('gangway.json', textOf({ before: withScope('old') }));
  const options = ['--auth.oauth.issuers', issuer.url, '--public-url', 'https://mcp.example.com'];
  const gateway = await startGateway({ args: ['--config', file.path, ...options] });
  const scopes = async (): Promise<unknown> => {
    const response = await fetch(`${gateway.baseUrl}/.well-known/oauth-protected-resource/mcp`);
    return ((await response.json()) as { scopes_supported?: unknown }).scopes_supported;
  };
  expect(await scopes()).toEqual(['old']);
  const token = await issuer.token({ claims: { sub: 'ada', scope: 'old' } });
  const session = await initialize(gateway.url, { headers: { Authorization: `Bearer ${token}` } });
  const held = session.callTool('progress', { count: 40, gapMs: 100, marker: 'x' }, { progressToken: 'x' });
  held.catch(() => undefined);
  await file.write(textOf({ after: withScope('new') }));
  await waitFor(async () => String(await scopes()) === 'new', { what: 'the metadata of the new server' });
});
