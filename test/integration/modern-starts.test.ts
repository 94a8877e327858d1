import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { everythingFixture, modernFixture, root, startGateway } from '../support/gateway.ts';
import { initialize, post } from '../support/http-client.ts';
import { callModern, openModern, postModern } from '../support/modern-client.ts';
import { connectModernSdk } from '../support/modern-sdk-client.ts';
import { waitFor } from '../support/wait-for.ts';
import { initializeBody } from './hostile-server.ts';

/** A server that is silent for so long is asked on a second process (`era-probe.ts`). */
const askedAgainMs = 4_000;

const fixtureFile = (name: string) => `${root}test/fixtures/${name}-server.mjs`;

/** A modern server that starts only after a time. */
const late = (ms: number) => ({
  command: process.execPath,
  args: [`${root}test/fixtures/children/starts-late.mjs`, String(ms), fixtureFile('modern')],
});

/** A gateway in front of one server among several, so that nothing is started before it is used. */
async function startAmongOthers(server: object, ...args: string[]) {
  const folder = await mkdtemp(join(tmpdir(), 'gangway-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const [command, ...rest] = everythingFixture;
  const mcpServers = { one: server, other: { command, args: rest } };
  await writeFile(join(folder, 'servers.json'), JSON.stringify({ mcpServers }));
  const gateway = await startGateway({ args: ['--config', join(folder, 'servers.json'), ...args] });
  return { gateway, url: `${gateway.baseUrl}/one/mcp` };
}

describe('server/discover', () => {
  test('[R9.02] waits for a server that starts slowly, and its client finds the era', async () => {
    const { url } = await startAmongOthers(late(1_500), '--sse.heartbeat', '200ms');
    const exchange = await openModern(url, 'server/discover');
    expect(exchange).toMatchObject({ status: 200, headers: { 'content-type': 'text/event-stream' } });
    expect((await exchange.answer()).messages).toMatchObject([{ result: { supportedVersions: ['2026-07-28'] } }]);
    await using client = await connectModernSdk(url, 'auto');
    expect(await client.callTool('echo', { text: 'x' })).toBe('x');
  });

  test.each(['auto', 'modern'])(
    '[R9.02] of a server that cannot be started: 200 and an error in band (era %s)',
    async (era) => {
      const { url } = await startAmongOthers({ command: './no-such-program', era });
      for (let i = 0; i < 2; i++) {
        const { status, json } = await postModern(url, 'server/discover', {}, { id: 'server-discover-probe-1' });
        expect({ status, id: json.id, reason: json.error.data.reason }).toEqual({
          status: 200,
          id: 'server-discover-probe-1',
          reason: 'server_start_failed',
        });
      }
      expect(await postModern(url, 'tools/list')).toMatchObject({ status: 502 });
      await expect(connectModernSdk(url, 'auto')).rejects.toThrow();
    },
  );

  test('of an only server of both eras that was asked whether it answers, since nobody came', async () => {
    const gateway = await startGateway({ command: [...modernFixture, '--dual'] });
    await waitFor(async () => (await (await fetch(`${gateway.baseUrl}/readyz`)).text()).includes('"started"'));
    const { status, json } = await postModern(gateway.url, 'server/discover');
    expect([status, json.result?.supportedVersions]).toEqual([200, ['2026-07-28']]);
  });

  test('[R9.02] of a server that says nothing: 200 and an error in band', async () => {
    const command = process.execPath;
    const args = [`${root}test/fixtures/children/never-reads.mjs`];
    const { url } = await startAmongOthers({ command, args, timeouts: { start: '500ms' } });
    const { status, json } = await postModern(url, 'server/discover');
    expect({ status, reason: json.error.data.reason }).toEqual({ status: 200, reason: 'server_start_timeout' });
  });
});

describe('[R6.06] the process that was asked for its era serves the first client', () => {
  test.for([
    ['legacy', fixtureFile('everything')],
    ['modern', fixtureFile('modern')],
    ['both eras', fixtureFile('modern'), '--dual'],
  ] as const)('of a slow server: %s', async ([_, file, ...args], { skip }) => {
    const folder = await mkdtemp(join(tmpdir(), 'gangway-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const starts = join(folder, 'starts');
    const counting = join(folder, 'counting.mjs');
    const go = join(folder, 'go');
    const code = `import { appendFileSync, existsSync } from 'node:fs';
      appendFileSync(${JSON.stringify(starts)}, 'x');
      while (!existsSync(${JSON.stringify(go)})) await new Promise((resolve) => setTimeout(resolve, 20));
      process.argv = [process.argv[0], ${JSON.stringify(file)}, ...process.argv.slice(2)];
      await import(${JSON.stringify(pathToFileURL(file).href)});\n`;
    await writeFile(counting, code);
    const { gateway, url } = await startAmongOthers(
      { command: process.execPath, args: [counting, ...args] },
      '--share',
      'auto',
    );
    const askedAt = performance.now();
    const discovering = postModern(url, 'server/discover');
    await waitFor(() => existsSync(starts), { what: 'the start of the server' });
    await writeFile(go, '');
    expect((await discovering).status).toBe(200);
    const tookMs = performance.now() - askedAt;
    expect((await callModern(url, 'echo', { text: 'x' })).json.result.content[0].text).toBe('x');
    skip(tookMs > askedAgainMs, 'this machine is so slow that a second process was asked');
    expect(await readFile(starts, 'utf8')).toBe('x');
    expect(await gateway.descendants()).toHaveLength(1);
  });
});

describe('the era of a server', () => {
  test('[R6.06] [R6.07] is found out on a process of its own, once, and does not disturb a session', async () => {
    const [command, ...args] = everythingFixture;
    const { gateway, url } = await startAmongOthers({ command, args });
    const session = await initialize(url);
    for (let i = 0; i < 3; i++) {
      expect(await postModern(url, 'server/discover')).toMatchObject({
        status: 200,
        json: { result: { supportedVersions: ['2025-11-25', '2026-07-28'] } },
      });
    }
    expect((await session.callTool('echo', { text: 'x' })).content[0].text).toBe('x');
    const found = gateway.logs().filter(({ msg }) => msg === 'detected the era of the server');
    expect(found).toMatchObject([{ server: 'one', era: 'legacy' }]);
    const isOver = async () => (await gateway.descendants()).length === 1;
    await waitFor(isOver, { what: 'the process of the probe to end, which no client needed', deadlineMs: 50_000 });
  });

  test('[R6.07] is found out again when a server is not what it was', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'gangway-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const program = join(folder, 'changing.mjs');
    const be = (file: string) =>
      writeFile(program, `await import(${JSON.stringify(`${root}test/fixtures/${file}`)});\n`);
    await be('modern-server.mjs');
    const { gateway, url } = await startAmongOthers({ command: process.execPath, args: [program] });
    expect((await callModern(url, 'echo', { text: 'x' })).json.result.content[0].text).toBe('x');
    await be('everything-server.mjs');
    expect((await callModern(url, 'exit')).status).toBe(502);
    expect((await callModern(url, 'echo')).json.error.data.reason).toBe('server_not_modern');
    expect((await callModern(url, 'echo', { text: 'y' })).json.result.content[0].text).toBe('y');
    const found = gateway.logs().filter(({ msg }) => msg === 'detected the era of the server');
    expect(found.map(({ era }) => era)).toEqual(['modern', 'legacy']);
  });

  test('[R6.07] does not follow from a crash: one that crashes once is served, one that always does gets 502', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'gangway-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const program = join(folder, 'crashes-once.mjs');
    const crash = `import { existsSync, writeFileSync } from 'node:fs';
      if (!existsSync('crashed')) { writeFileSync('crashed', ''); process.exit(1); }
      await import(${JSON.stringify(`${root}test/fixtures/modern-server.mjs`)});\n`;
    await writeFile(program, crash);
    const { url } = await startAmongOthers({ command: process.execPath, args: [program], cwd: folder });
    expect((await callModern(url, 'echo', { text: 'x' })).json.result.content[0].text).toBe('x');
    expect((await (await initialize(url)).callTool('echo', { text: 'y' })).content[0].text).toBe('y');
    const crashing = await startAmongOthers({ command: process.execPath, args: ['-e', 'process.exit(1)'] });
    expect(await callModern(crashing.url, 'echo')).toMatchObject({
      status: 502,
      json: { error: { data: { reason: 'server_start_failed' } } },
    });
  });

  test('that is said to be legacy is not asked for', async () => {
    const gateway = await startGateway({ command: [...modernFixture, '--dual'], args: ['--era', 'legacy'] });
    const { supportedVersions } = (await postModern(gateway.url, 'server/discover')).json.result;
    expect(supportedVersions).toEqual(['2025-11-25', '2026-07-28']);
    expect(gateway.logs().some(({ msg }) => msg === 'detected the era of the server')).toBe(false);
  });

  test('that is said to be another one than it is: the log says what to do', async () => {
    const legacy = await startGateway({ command: everythingFixture, args: ['--era', 'modern'] });
    const refused = (await postModern(legacy.url, 'server/discover')).json.error.data.reason;
    expect(refused).toBe('server_not_modern');
    const said = { msg: 'shared server did not start', detail: expect.stringContaining('remove it') };
    await waitFor(() => legacy.logs().some(({ msg }) => msg === said.msg));
    expect(legacy.logs()).toContainEqual(expect.objectContaining(said));
    const modern = await startGateway({ command: modernFixture, args: ['--era', 'legacy'] });
    await post(modern.url, initializeBody);
    await waitFor(() => modern.logs().some(({ msg }) => msg === 'session ended'));
    const ended = { msg: 'session ended', errorCode: -32022, detail: expect.stringContaining('remove it') };
    expect(modern.logs()).toContainEqual(expect.objectContaining(ended));
  });

  test('an only server that ends at once ends the gateway, one of several is told in the log', async () => {
    const command = [process.execPath, '-e', 'process.exit(3)'];
    // It may end before its endpoint is ready, or after.
    const said = await startGateway({ command, args: ['--era', 'modern'] }).then(
      async (only) => {
        expect(await only.exited).toMatchObject({ code: 1 });
        return only.stderr();
      },
      ({ message }: Error) => message,
    );
    expect(said).toMatch(/ended .* after its start/);
    const [file, ...args] = command;
    const { gateway } = await startAmongOthers({ command: file, args, era: 'modern' });
    await waitFor(() => gateway.logs().some(({ msg }) => msg === 'shared server did not start'));
  });

  test('a server that always ends is left alone after a while, and its clients are told', async () => {
    const gateway = await startGateway({ command: modernFixture, args: ['--era', 'modern'] });
    const reasons = [];
    for (let i = 0; i < 7; i++) reasons.push((await callModern(gateway.url, 'exit')).json.error.data.reason);
    expect(reasons).toEqual([...Array(6).fill('server_exited'), 'server_crash_loop']);
    const discover = await postModern(gateway.url, 'server/discover');
    expect(discover).toMatchObject({ status: 200, json: { error: { data: { reason: 'server_crash_loop' } } } });
  });

  test('[F27] a gateway that ends while it finds out leaves nothing behind', async () => {
    const { gateway, url } = await startAmongOthers(late(60_000));
    const asked = openModern(url, 'server/discover');
    asked.catch(() => undefined);
    const [probe] = await waitFor(async () => {
      const running = await gateway.descendants();
      return running.length > 0 && running;
    });
    expect(await gateway.stop()).toEqual({ code: 0, signal: null });
    expect(() => process.kill(probe?.pid as number, 0)).toThrow();
  });
});
