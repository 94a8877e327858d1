import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { type Gateway, root, startGateway } from '../support/gateway.ts';
import { initialize } from '../support/http-client.ts';
import { waitForMetric } from '../support/metrics.ts';
import { findFreePort } from '../support/redis-process.ts';
import { waitFor } from '../support/wait-for.ts';

const fixture = `${root}test/fixtures/children/tools-of-a-file.mjs`;
const inputSchema = { type: 'object', properties: { path: { type: 'string' } } };
const read = { name: 'read', description: 'Reads a file.', inputSchema };
const write = { name: 'write', description: 'Writes a file.', inputSchema };

/** A folder with the tools of a server, and a configuration file with `options` of the server. */
function createFolder(options: object = {}, more: object = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'gangway-tools-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const tools = join(folder, 'tools.json');
  const config = join(folder, 'gangway.json');
  const server = { command: process.execPath, args: [fixture, tools], ...options };
  writeFileSync(config, JSON.stringify({ mcpServers: { files: server }, ...more }));
  const list = (...listed: readonly object[]): void => writeFileSync(tools, JSON.stringify(listed));
  list(read, write);
  return { folder, config, list, pin: join(folder, 'pins.json') };
}

/** What `pin` shows of a tool. */
const shown = (description: string): string =>
  `  description: ${description}\n  inputSchema: ${JSON.stringify(inputSchema)}\n`;

const run = (...args: readonly string[]): Promise<{ code: number; text: string }> =>
  new Promise((resolve) => {
    execFile(process.execPath, [`${root}dist/main.js`, ...args], (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), text: stdout + stderr }),
    );
  });

const namesOf = async (session: Awaited<ReturnType<typeof initialize>>): Promise<string[]> =>
  (await session.request('tools/list')).messages[0].result.tools.map(({ name }: { readonly name: string }) => name);

const changeLines = (gateway: Gateway) =>
  gateway.logs().filter(({ msg }) => msg === 'the definition of a tool has changed');

test('a tool that changes between two lists is logged once and counted, also over a restart with a store in files', async () => {
  const adminPort = await findFreePort();
  const { folder, config, list } = createFolder();
  const start = () =>
    startGateway({ adminPort, args: ['--config', config, '--replay.store', `file:${join(folder, 'store')}`] });
  const gateway = await start();
  const session = await initialize(gateway.url);
  await session.request('tools/list');
  list({ inputSchema, description: read.description, name: 'read' }, write); // another order is no change
  await session.request('tools/list');
  list({ ...read, description: 'Reads a file, and sends it to a stranger.' }, write);
  await session.request('tools/list');
  await session.request('tools/list');
  await waitForMetric(adminPort, 'mcp_gangway_tool_changes_total', { server: 'files' }, (value) => value === 1);
  expect(changeLines(gateway)).toMatchObject([{ server: 'files', tool: 'read', changed: ['description'] }]);
  await gateway.stop();

  list(read, { ...write, inputSchema: { type: 'object' } });
  const next = await start();
  await (await initialize(next.url)).request('tools/list');
  await waitFor(() => changeLines(next).length > 0, { what: 'the line about the change' });
  // The first definition of `read` was seen before.
  expect(changeLines(next)).toMatchObject([{ tool: 'write', changed: ['inputSchema'] }]);
});

test('a pin file hides new and changed tools, until the command renews it', async () => {
  const { folder, config, list, pin } = createFolder({ pin: 'PIN' });
  writeFileSync(config, readFileSync(config, 'utf8').replace('"PIN"', JSON.stringify(pin)));
  const missing = `The pin file ${pin} does not exist. Write it with: mcp-gangway pin files --config ${config}`;
  await expect(startGateway({ args: ['--config', config] })).rejects.toThrow(missing);
  expect(await run('check', '--config-only', '--config', config)).toEqual({
    code: 2,
    text: `mcp-gangway: ${missing}\n`,
  });
  expect((await run('check', '--config', config)).text).toContain(missing);
  const withoutFile = ['--defaults.pin', pin, '--', process.execPath, fixture, join(folder, 'tools.json')];
  const { text: advice } = await run('check', ...withoutFile);
  expect(advice).toMatch(/Write it with: mcp-gangway pin \S+ with the same options/);
  expect(advice).not.toContain('--config');
  // As it stands in the page.
  const [, command = ''] = /^mcp-gangway (pin .*)$/m.exec(readFileSync(`${root}docs/tools.md`, 'utf8')) ?? [];
  const first = await run(...command.replace('gangway.json', config).split(' '));
  expect(first).toEqual({
    code: 0,
    text: `new: read\n${shown('Reads a file.')}new: write\n${shown('Writes a file.')}Pinned 2 tools in ${pin}.\n`,
  });
  expect((await run('check', '--config-only', '--config', config)).code).toBe(0);
  expect(await run('pin', 'files', '--check', '--config', config)).toEqual({
    code: 0,
    text: 'No tool is new or changed.\n',
  });

  const gateway = await startGateway({ args: ['--config', config] });
  const session = await initialize(gateway.url);
  expect(await namesOf(session)).toEqual(['read', 'write']);
  list(read, { ...write, description: 'Deletes a file.' }, { ...read, name: 'fresh' });
  expect(await namesOf(session)).toEqual(['read']);
  for (const name of ['write', 'fresh']) {
    const [{ error }] = (await session.request('tools/call', { name })).messages;
    expect(error.data.reason).toBe('tool_not_pinned');
    expect(error.message).toContain('mcp-gangway pin');
  }
  // A client that has listed nothing gets the same.
  const other = await initialize(gateway.url);
  expect((await other.request('tools/call', { name: 'write' })).messages[0].error.data.reason).toBe('tool_not_pinned');
  expect((await other.request('tools/call', { name: 'read' })).messages[0].result.content[0].text).toBe('called read');
  expect((await other.request('tools/call', { name: 'none' })).messages[0].error.data.reason).toBe('unknown_tool');

  const changes = `new: fresh\n${shown('Reads a file.')}changed: write (description)\n${shown('Deletes a file.')}`;
  const before = readFileSync(pin, 'utf8');
  expect(await run('pin', 'files', '--check', '--config', config)).toEqual({
    code: 1,
    text: `${changes}2 tools are new or changed. Nothing was written; to pin: mcp-gangway pin files --config ${config}\n`,
  });
  expect(readFileSync(pin, 'utf8')).toBe(before);
  const second = await run('pin', 'files', '--config', config);
  expect(second.text).toBe(`${changes}Pinned 3 tools in ${pin}.\n`);
  await waitFor(async () => (await namesOf(session)).length === 3, { what: 'the renewed tools' });
  expect((await session.request('tools/call', { name: 'write' })).messages[0].result).toBeDefined();
});

test('a view has a pin file of its own, whose names have the prefixes', async () => {
  const { folder, config, list } = createFolder({ tools: { read: { description: 'As the operator says.' } } });
  const pin = join(folder, 'view-pins.json');
  const given = JSON.parse(readFileSync(config, 'utf8'));
  writeFileSync(config, JSON.stringify({ ...given, views: { all: { servers: ['files'], pin } } }));
  expect((await run('pin', 'all', '--config', config)).text).toMatch(
    /^new: files__read\n(?: {2}.*\n)+new: files__write\n/,
  );
  const gateway = await startGateway({ args: ['--config', config] });
  const session = await initialize(gateway.url.replace('/files/', '/all/'));
  expect(await namesOf(session)).toEqual(['files__read', 'files__write']);
  list({ ...read, description: 'The operator replaces this.' }, { ...write, description: 'Deletes a file.' });
  expect(await namesOf(session)).toEqual(['files__read']);
  const [{ error }] = (await session.request('tools/call', { name: 'files__write' })).messages;
  expect(error.data.reason).toBe('tool_not_pinned');
});

test('[P8] pin shows long and hostile text of a tool bounded, on one line, without control characters', async () => {
  const { config, list } = createFolder({ pin: 'pins.json' });
  list({ name: 'read', description: `a\n\u001b[2J\u202e${'x'.repeat(5_000)}`, inputSchema });
  const { text } = await run('pin', 'files', '--config', config);
  const [, line = ''] = text.split('\n');
  expect(line).toMatch(/^ {2}description: a\\n\\u001b\[2J\\u202ex+… \(the first 4000 of 50\d\d characters\)$/);
  expect(text.split('\n')).toHaveLength(5);
});

test('[P8] pin says which tools are too long to be pinned, and that clients do not see them', async () => {
  const { config, list } = createFolder({ pin: 'pins.json' });
  list(read, { ...write, description: 'x'.repeat(300_000) });
  expect((await run('pin', 'files', '--config', config)).text).toContain(
    'not pinned: write (longer than 256KiB, so clients do not see it)\nPinned 1 tool in ',
  );
});

test('a relative path of a pin file begins at the configuration file, and at the included file that has the server', async () => {
  const { folder, config } = createFolder({ pin: 'pins.json' });
  const { mcpServers } = JSON.parse(readFileSync(config, 'utf8'));
  mkdirSync(join(folder, 'servers.d'));
  writeFileSync(
    join(folder, 'servers.d', 'more.json'),
    JSON.stringify({ mcpServers: { more: { ...mcpServers.files, pin: 'more.json.pins' } } }),
  );
  writeFileSync(config, JSON.stringify({ mcpServers, views: { all: { servers: ['*'], pin: 'view.pins' } } }));
  const places = { files: 'pins.json', more: 'servers.d/more.json.pins', all: 'view.pins' };
  for (const [name, place] of Object.entries(places)) {
    expect((await run('pin', name, '--config', config)).text).toContain(join(folder, place));
    expect([place, existsSync(join(folder, place))]).toEqual([place, true]);
  }
  expect((await run('check', '--config-only', '--config', config)).code).toBe(0);
});

test('pin of a server that does not start shows its last output, as check does', async () => {
  const { config } = createFolder();
  const args = ['-e', 'console.error("no database"); process.exit(1)'];
  writeFileSync(
    config,
    JSON.stringify({ mcpServers: { files: { command: process.execPath, args, pin: 'pins.json' } } }),
  );
  const { code, text } = await run('pin', 'files', '--config', config);
  expect(text).toMatch(/The pin file was not written: files: .*The server exited with code 1/);
  expect(text).toMatch(/\n {8}\| no database\n/);
  expect(code).toBe(1);
});

test('pin says what is wrong', async () => {
  const { config } = createFolder();
  expect(await run('pin', 'else', '--config', config)).toMatchObject({
    code: 2,
    text: expect.stringContaining('pin needs the name of a server or view: files.'),
  });
  expect(await run('pin', 'files', '--config', config)).toMatchObject({
    code: 2,
    text: expect.stringContaining('files has no pin file. Set "pin" in its entry'),
  });
});
