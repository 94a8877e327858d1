import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { platform, tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { makeKey } from '../../src/app/commands/key-command.ts';
import { changingFile } from '../support/changing-file.ts';
import { type Gateway, modernFixture, root, startGateway } from '../support/gateway.ts';
import { initialize, open, post } from '../support/http-client.ts';
import { isAtLeast } from '../support/log-levels.ts';
import { scrape } from '../support/metrics.ts';
import { descendantsOf } from '../support/processes.ts';
import { findFreePort } from '../support/redis-process.ts';
import { pageHeaders } from '../support/status-page.ts';
import { waitFor } from '../support/wait-for.ts';

const childCommand = (name: string): string[] => [process.execPath, `${root}test/fixtures/children/${name}.mjs`];
const childAt = (name: string, ...args: string[]) => ({
  ...{ command: process.execPath, args: [`${root}test/fixtures/children/${name}.mjs`, ...args] },
});

/** How the page for operators has the instance, as it is told at first. */
async function pageReadiness(adminPort: number, gateway: Gateway): Promise<string> {
  const headers = pageHeaders(gateway);
  const response = await fetch(`http://127.0.0.1:${adminPort}/status/events`, { headers });
  let text = '';
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    text += Buffer.from(chunk).toString();
    const state = /event: state\ndata: (.*)\n\n/.exec(text)?.[1];
    if (state !== undefined) return JSON.parse(state).instance.readiness;
  }
  throw new Error(`no state was told: ${text}`);
}

async function readyOf(baseUrl: string) {
  const { status, json } = await (await open(`${baseUrl}/readyz`, { method: 'GET' })).answer();
  return { ...json, status };
}

const startWith = async (mcpServers: object, options: object = {}, args: readonly string[] = [], adminPort = 0) => {
  const { path } = await changingFile('gangway.json', JSON.stringify({ defaults: options, mcpServers }));
  return startGateway({ adminPort, args: ['--config', path, ...args] });
};

const initializeBody = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
};

describe.runIf(platform() === 'linux')('a store in files that cannot be written', () => {
  it('is a reason of /readyz, and a number, until it can be written again', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'gangway-full-'));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const adminPort = await findFreePort();
    const args = ['--replay.store', `file:${folder}/store`];
    const gateway = await startGateway({ command: childCommand('mini-server'), args, adminPort });
    const isUp = async () => (await scrape(adminPort)).value('mcp_gangway_file_store_up');
    expect([(await readyOf(gateway.baseUrl)).status, await isUp()]).toEqual([200, 1]);
    // A limit on the size of files fails as a full disk does.
    const limitFiles = (limit: string) => execFileSync('prlimit', ['--pid', String(gateway.pid), `--fsize=${limit}:`]);
    limitFiles('1');
    expect((await post(gateway.url, initializeBody)).status).toBe(503);
    const reasons = [{ reason: 'store_unavailable', detail: expect.stringContaining('store in files') }];
    expect(await readyOf(gateway.baseUrl)).toMatchObject({ status: 503, reasons });
    expect(await isUp()).toBe(0);
    limitFiles('unlimited');
    const isReady = async () => (await readyOf(gateway.baseUrl)).status === 200;
    await waitFor(isReady, { what: 'the store', deadlineMs: 30_000 });
    expect(await isUp()).toBe(1);
    await initialize(gateway.url);
  });
});

const crashing = { command: process.execPath, args: ['-e', 'console.error("waits for it"); process.exit(1)'] };

describe('/readyz', () => {
  it('says what came of each server last, and stays 200 whatever that is', async () => {
    const dying = { command: process.execPath, args: ['-e', 'console.error("/srv/secret"); process.exit(3)'] };
    const wrong = { command: '/no/such/secret-command' };
    const servers = { good: childAt('mini-server'), dying, wrong, unused: childAt('mini-server') };
    const { baseUrl, logs } = await startWith(servers);
    await initialize(`${baseUrl}/good/mcp`);
    expect((await post(`${baseUrl}/dying/mcp`, initializeBody)).status).toBe(502);
    expect((await post(`${baseUrl}/wrong/mcp`, initializeBody)).status).toBe(502);
    const ready = await readyOf(baseUrl);
    const help = expect.stringMatching(/^Correct the cause .* run the command manually.*mcp-gangway check/);
    const at = expect.stringMatching(/^\d{4}-\d\d-\d\dT/);
    expect(ready).toEqual({
      ...{ status: 200, reasons: [] },
      servers: [
        { name: 'good', transport: 'stdio', era: 'legacy', last: { outcome: 'started', at }, probe: null },
        expect.objectContaining({ name: 'dying', last: expect.objectContaining({ reason: 'exited', help, at }) }),
        expect.objectContaining({ name: 'wrong', last: expect.objectContaining({ reason: 'not_found' }) }),
        { name: 'unused', transport: 'stdio', era: null, last: null, probe: null },
      ],
    });
    expect(JSON.stringify(ready)).not.toMatch(/secret|srv/);
    // One try of a client, one end that is told, with what to do; the other process is asked for its era.
    const isWarning = (line: Record<string, unknown>) => isAtLeast(line, 'warn') && line['server'] === 'dying';
    await waitFor(() => logs().filter(isWarning).length > 2);
    expect(logs().filter(isWarning)).toMatchObject([
      { msg: 'last output of the server', lastOutput: ['/srv/secret'] }, // of the other one, which no client has spoken to
      { msg: 'server ended', detail: expect.stringContaining('code 3'), help },
      { msg: 'session ended', reason: 'server_start_failed' },
    ]);
  });

  it.each([
    [
      'that hangs',
      { command: process.execPath, args: ['-e', 'console.error("waits for it"); process.stdin.resume()'] },
    ],
    ['of the modern era that ends', { ...crashing, era: 'modern' }],
    ['whose spare ends', { ...crashing, warm: 1 }],
  ])('beside it the log has what a server of a file wrote %s, where no client has spoken to it', async (_, entry) => {
    const servers = { bad: { ...entry, timeouts: { start: '500ms' } }, good: childAt('mini-server') };
    const { baseUrl, logs } = await startWith(servers);
    void post(`${baseUrl}/bad/mcp`, initializeBody).catch(() => undefined);
    const wrote = await waitFor(() => logs().find(({ lastOutput }) => lastOutput !== undefined));
    expect(wrote).toMatchObject({ level: 'warn', server: 'bad', lastOutput: ['waits for it'] });
  });

  it('[S03] names no servers to those who have not shown who they are', async () => {
    const keys = await changingFile('keys.json', `[${makeKey('alice').entry}]`);
    const { baseUrl } = await startWith({ one: childAt('mini-server') }, {}, ['--api-keys-file', keys.path]);
    expect(await readyOf(baseUrl)).toEqual({ status: 200, reasons: [] });
  });
});

describe('a probe', () => {
  const quick = {
    probes: { every: '50ms', required: true },
    timeouts: { start: '2s' },
  };

  it('of a server that is required makes the instance unready while it is down, for all who ask, and leaves no process', async () => {
    // Works as long as there is a file.
    const sign = await changingFile('sign', '');
    const code = `if (!require('node:fs').existsSync(process.argv[1])) { console.error('no sign'); process.exit(1); } import(process.argv[2]);`;
    const args = ['-e', code, sign.path, childAt('mini-server').args[0]];
    const adminPort = await findFreePort();
    const gateway = await startWith(
      { one: { command: process.execPath, args, era: 'legacy' }, two: childAt('mini-server') },
      quick,
      [],
      adminPort,
    );
    const probeOf = async () => (await readyOf(gateway.baseUrl)).servers[0].probe;
    await waitFor(async () => (await probeOf()) === 'up', { what: 'the first answer' });
    expect((await readyOf(gateway.baseUrl)).reasons).toEqual([]);
    await rm(sign.path);
    const unready = await waitFor(async () => {
      const ready = await readyOf(gateway.baseUrl);
      return ready.reasons.length > 0 && ready;
    });
    expect(unready).toMatchObject({ reasons: [{ reason: 'server_down' }] });
    expect((await open(`${gateway.baseUrl}/readyz`, { method: 'GET' })).status).toBe(503);
    expect((await open(`${gateway.baseUrl}/healthz`, { method: 'GET' })).status).toBe(200);
    const unavailable = await scrape(adminPort);
    expect(unavailable.value('mcp_gangway_readiness', { state: 'unavailable' })).toBe(1);
    expect(unavailable.value('mcp_gangway_readiness')).toBe(1);
    expect(await pageReadiness(adminPort, gateway)).toBe('unavailable');
    expect(unavailable.value('mcp_gangway_server_probe_up', { server: 'one' })).toBe(0);
    await sign.write('');
    await waitFor(async () => (await probeOf()) === 'up', { what: 'the server to be up again' });
    expect((await readyOf(gateway.baseUrl)).reasons).toEqual([]);
    expect(await pageReadiness(adminPort, gateway)).toBe('ready');
    const well = await scrape(adminPort);
    expect(well.value('mcp_gangway_server_probe_up')).toBe(2);
    expect(well.value('mcp_gangway_server_start_failures_total')).toBe(0);
    const told = gateway.logs().filter(({ server, msg }) => server === 'one' && msg !== 'endpoint ready');
    expect(told.map(({ msg }) => msg)).toEqual(
      ['up', 'down', 'up'].map((state) => `server is ${state} according to its probes`),
    );
    expect(told[1]).toMatchObject({ level: 'warn', lastOutput: ['no sign'] });
    await gateway.stop();
    expect(await descendantsOf(gateway.pid)).toEqual([]);
  });

  it('of a server that does not start is told once, as what it is, and counts no client', async () => {
    const adminPort = await findFreePort();
    const dying = { command: process.execPath, args: ['-e', 'process.exit(3)'] };
    const often = { ...quick, probes: { every: '50ms' } };
    const gateway = await startWith({ dying, modern: { ...dying, era: 'modern' } }, often, [], adminPort);
    const retries = (count: number) => ({
      what: `start ${count}`,
      deadlineMs: 30_000,
    });
    for (const server of ['dying', 'modern'])
      await waitFor(
        async () => ((await scrape(adminPort)).value('mcp_gangway_backend_starts_total', { server }) ?? 0) > 3,
        retries(4),
      );
    const scraped = await scrape(adminPort);
    expect(scraped.value('mcp_gangway_server_probe_up', { server: 'dying' })).toBe(0);
    expect(scraped.value('mcp_gangway_server_start_failures_total', { server: 'dying' })).toBe(0);
    const warnings = gateway.logs().filter((line) => isAtLeast(line, 'warn') && line['server'] === 'dying');
    expect(warnings).toMatchObject([
      { msg: 'server is down according to its probes', reason: 'exited', detail: expect.stringContaining('code 3') },
    ]);
  });

  it('of a modern server asks the process that its clients share', async () => {
    const [command, ...args] = modernFixture;
    const gateway = await startWith({ modern: { command, args, era: 'modern' }, other: childAt('mini-server') }, quick);
    const modernOf = async () => (await readyOf(gateway.baseUrl)).servers[0];
    await waitFor(async () => (await modernOf()).probe === 'up', { what: 'the first answer' });
    expect(await modernOf()).toMatchObject({ era: 'modern', last: { outcome: 'started' } });
  });
});

describe('an only server that no client uses', () => {
  const node = (code: string): readonly string[] => [process.execPath, '-e', code];
  const lastOf = async (baseUrl: string) => (await readyOf(baseUrl)).servers[0].last;

  it('and that starts slowly is mentioned, and causes no warning', async () => {
    const slow = `setTimeout(() => require('node:readline').createInterface({ input: process.stdin }).on('line', (line) =>
      console.log(JSON.stringify({ jsonrpc: '2.0', id: JSON.parse(line).id, result: {} }))), 9_000)`;
    const gateway = await startGateway({ command: node(slow) });
    const lineOf = (message: string) =>
      waitFor(() => gateway.logs().find(({ msg }) => msg === message), { what: message, deadlineMs: 60_000 });
    expect(await lineOf('the server has not answered yet')).toMatchObject({
      level: 'info',
      detail: expect.stringContaining('(--defaults.timeouts.start)'),
    });
    expect(await lastOf(gateway.baseUrl)).toBeNull();
    await lineOf('the server answers');
    expect(gateway.logs().filter((line) => isAtLeast(line, 'warn'))).toEqual([]);
  });

  it('and that hangs at its start is told of after the limit, with what to do', async () => {
    const command = node('console.error("waits for it"); process.stdin.resume()');
    const gateway = await startGateway({ command, args: ['--defaults.timeouts.start', '5s'] });
    expect(await lastOf(gateway.baseUrl)).toBeNull();
    const warning = await waitFor(() => gateway.logs().find(({ msg }) => msg === 'server does not answer'), {
      what: 'the warning',
      deadlineMs: 20_000,
    });
    const help = expect.stringMatching(/^A STDIO server must answer on stdout.*mcp-gangway check/);
    expect(warning).toMatchObject({
      level: 'warn',
      detail: expect.stringContaining('Check that it is an MCP server'),
      help,
      lastOutput: ['waits for it'],
    });
    expect(await lastOf(gateway.baseUrl)).toMatchObject({ outcome: 'failed', reason: 'no_answer', help });
  });

  it.each([
    ['legacy', 'and its process is still for the first client', true],
    // A server of both eras takes the era of the first request that its process gets, which is to be the client's.
    ['auto', 'and the process that was asked is no client’s', false],
  ])('of era %s is known to answer, %s', async (era, _, isKept) => {
    const command = [process.execPath, ...childAt('mini-server').args];
    const gateway = await startGateway({ command, args: ['--era', era] });
    const [first] = await gateway.descendants();
    await waitFor(async () => (await lastOf(gateway.baseUrl))?.outcome === 'started', { what: 'its answer' });
    const session = await initialize(gateway.url);
    expect((await session.request('ping', {})).status).toBe(200);
    const pids = (await gateway.descendants()).map(({ pid }) => pid);
    expect(pids).toHaveLength(1);
    expect(pids.includes(Number(first?.pid))).toBe(isKept);
  });

  it('and that ends on any request before initialize is started again, and not asked', async () => {
    const strict = `require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
      const { id, method } = JSON.parse(line);
      if (method === 'notifications/initialized') return;
      if (method !== 'initialize') process.exit(1);
      const result = { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 's', version: '1' } };
      console.log(JSON.stringify({ jsonrpc: '2.0', id, result }));
    });`;
    const gateway = await startGateway({ command: node(strict) });
    const pidOf = async () => (await gateway.descendants()).map(({ pid }) => pid)[0];
    const first = await pidOf();
    const second = await waitFor(async () => {
      const pid = await pidOf();
      return pid !== undefined && pid !== first && pid;
    });
    expect((await initialize(gateway.url)).id).toBeDefined();
    expect(await pidOf()).toBe(second);
    expect(gateway.logs().filter((line) => isAtLeast(line, 'warn'))).toEqual([]);
  });
});
