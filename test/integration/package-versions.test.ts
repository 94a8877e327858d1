// Servers by the name of a package, in several versions and at several gateways. Each test installs several times, which
// takes seconds of processor time.
import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { changingFile } from '../support/changing-file.ts';
import { startGateway } from '../support/gateway.ts';
import { postModern } from '../support/modern-client.ts';
import { askServer, draftsIn, runCommand, startInstalling, weather } from '../support/package-gateway.ts';
import { startPackageRegistry } from '../support/package-registry.ts';
import { waitFor } from '../support/wait-for.ts';

// npm takes seconds of processor time, several times in a test.
vi.setConfig({ testTimeout: 240_000 });

test('a wanted version is a package of its own; list, check and upgrade know those of a file', async () => {
  const registry = await startPackageRegistry(weather, { ...weather, version: '2.0.0' });
  const mcpServers = {
    newest: { command: 'npx', args: ['-y', '@test/weather', '--new'] },
    old: { command: '@test/weather@1.0.0' },
    both: { command: 'npx', args: ['--package=@test/weather@1', 'weather'] },
  };
  const file = await changingFile(
    'gangway.json',
    JSON.stringify({ mcpServers, packages: { folder: registry.folder } }),
  );
  const list = async () => (await runCommand(registry.env, 'list', '--config', file.path)).stdout;
  expect(await list()).toContain('@test/weather (not installed yet) from npm');
  const checked = await runCommand(registry.env, 'check', '--config', file.path, '--json');
  const servers: { name: string; ok: boolean; package: string }[] = JSON.parse(checked.stdout).servers;
  expect(servers.map(({ name, ok, package: from }) => [name, ok, from])).toEqual([
    ['newest', true, '@test/weather 2.0.0 from npm'],
    ['old', true, '@test/weather 1.0.0 from npm'],
    ['both', true, '@test/weather 1.0.0 from npm'],
  ]);
  expect(await list()).toMatch(/^old .*\[@test\/weather 1\.0\.0 from npm\]/m);
  const gateway = await startGateway({ args: ['--config', file.path], env: registry.env });
  expect(gateway.stdout()).toContain('newest: @test/weather 2.0.0 from npm, old: @test/weather 1.0.0 from npm');
  expect(await askServer(gateway, '/newest/mcp')).toMatchObject({ version: '2.0.0', args: ['--new'] });
  expect(await askServer(gateway, '/both/mcp')).toMatchObject({ version: '1.0.0', args: [] });
  await registry.publish({ ...weather, version: '1.5.0' });
  const upgraded = await runCommand(registry.env, 'upgrade', 'both', '--config', file.path);
  expect(upgraded.stdout).toContain('npx:@test/weather@1: 1.5.0, before 1.0.0.'.slice(4));
  expect(await askServer(gateway, '/both/mcp')).toMatchObject({ version: '1.5.0' });
  expect(await askServer(gateway, '/old/mcp')).toMatchObject({ version: '1.0.0' });
});

test('files that were lost come back in the version that was pinned; kept lists are answered meanwhile', async () => {
  const registry = await startPackageRegistry(weather);
  const mcpServers = {
    weather: { command: '@test/weather', lists: { ttl: '1h' } },
    other: { command: 'npx:@test/weather' },
  };
  const file = await changingFile(
    'gangway.json',
    JSON.stringify({ mcpServers, packages: { folder: registry.folder } }),
  );
  const gateway = await startGateway({ args: ['--config', file.path], env: registry.env });
  const list = () => postModern(`${gateway.baseUrl}/weather/mcp`, 'tools/list');
  const known = await list();
  expect(known.json.result.tools).toHaveLength(1);
  await registry.publish({ ...weather, version: '3.0.0' });
  const [key = ''] = await readdir(registry.folder);
  const pin = JSON.parse(await readFile(join(registry.folder, key, 'pin.json'), 'utf8'));
  await rm(join(registry.folder, key, pin.folder), { recursive: true });
  const release = registry.hold();
  const told = askServer(gateway, '/weather/mcp');
  expect((await list()).json.result.tools).toEqual(known.json.result.tools);
  const isWaiting = await Promise.race([told.then(() => false), delay(300, true)]);
  release();
  expect(isWaiting).toBe(true);
  expect(await told).toMatchObject({ version: '1.0.0' });
});

test('two gateways that install at the same time share one installation in the end', async () => {
  const registry = await startPackageRegistry(weather);
  const release = registry.hold();
  const both = [startInstalling(registry, ['@test/weather']), startInstalling(registry, ['@test/weather'])];
  await waitFor(async () => (await draftsIn(registry)).length === 2, { deadlineMs: 60_000 });
  release();
  for (const gateway of await Promise.all(both)) expect(await askServer(gateway)).toMatchObject({ version: '1.0.0' });
  expect(await draftsIn(registry)).toEqual([]);
  const [key = '', ...others] = await readdir(registry.folder);
  expect(others).toEqual([]);
  expect((await readdir(join(registry.folder, key))).length).toBe(2);
});

test('scripts of a package run while it is installed, and do not with no-scripts', async () => {
  const registry = await startPackageRegistry({ ...weather, scripts: { postinstall: 'echo ran > script-ran' } });
  const ranIn = async (...args: readonly string[]) => {
    await (await startInstalling(registry, [...args, '@test/weather'])).stop();
    const files = await readdir(registry.folder, { recursive: true });
    return files.some((file) => file.endsWith('script-ran'));
  };
  expect(await ranIn('--defaults.packages', 'no-scripts')).toBe(false);
  expect(await ranIn()).toBe(true);
});
