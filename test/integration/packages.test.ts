// Servers by the name of a package: docs/recipes/packages.md. `package-versions.test.ts` has more installations.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { openAnswered } from '../support/answered-session.ts';
import { changingFile } from '../support/changing-file.ts';
import { root, startGateway } from '../support/gateway.ts';
import { askServer, draftsIn, runCommand, startInstalling, weather } from '../support/package-gateway.ts';
import { type PackageRegistry, startPackageRegistry } from '../support/package-registry.ts';
import { waitFor } from '../support/wait-for.ts';

// npm takes seconds of processor time, several times in a test.
vi.setConfig({ testTimeout: 240_000 });

/** npm starts slowly on a busy machine. */
const slowly = { deadlineMs: 60_000 };

describe('one command starts a package', () => {
  test('from an empty folder; its program runs directly, and starts again without a network', async () => {
    const registry = await startPackageRegistry(weather);
    const gateway = await startInstalling(registry, ['@test/weather', '--city', 'Oslo']);
    expect(gateway.stdout()).toContain(`Packages: @test/weather 1.0.0 from npm; in ${registry.folder}\n`);
    expect(gateway.url).toMatch(/\/mcp$/);
    expect(await askServer(gateway)).toMatchObject({ version: '1.0.0', args: ['--city', 'Oslo'] });
    await openAnswered(gateway.url);
    const commands = (await gateway.descendants()).map(({ command }) => command);
    expect(commands.filter((command) => command.includes('server.js')).length).toBeGreaterThan(0);
    for (const command of commands) expect(command).not.toMatch(/^(?:\S*\/)?(?:npm|npx|sh) /);
    await gateway.stop();
    await registry.close();
    const later = await startInstalling(registry, ['@test/weather']);
    expect(await askServer(later)).toMatchObject({ version: '1.0.0', args: [] });
  });

  test('an option of the gateway after the package goes to the server, with a warning', async () => {
    const registry = await startPackageRegistry(weather);
    const gateway = await startInstalling(registry, ['npx:@test/weather', '--port', '1']);
    expect(await askServer(gateway)).toMatchObject({ args: ['--port', '1'] });
    expect(gateway.logs().map(({ msg }) => msg)).toContainEqual(
      expect.stringContaining('--port: stands after the package'),
    );
  });
});

describe('versions', () => {
  test('stay until an upgrade, which the next process of a running gateway has', async () => {
    const registry = await startPackageRegistry(weather);
    const gateway = await startInstalling(registry, ['npx:@test/weather']);
    await registry.publish({ ...weather, version: '1.1.0' });
    expect(await askServer(gateway)).toMatchObject({ version: '1.0.0' });
    const again = await startInstalling(registry, ['--', 'npx', '-y', '@test/weather']);
    expect(await askServer(again)).toMatchObject({ version: '1.0.0' });
    const folder = ['--packages.folder', registry.folder];
    const upgraded = await runCommand(registry.env, 'upgrade', '@test/weather', ...folder);
    expect(upgraded).toMatchObject({ code: 0, stderr: '' });
    expect(upgraded.stdout).toBe('@test/weather: 1.1.0, before 1.0.0. Processes that start from now on have it.\n');
    expect(await askServer(gateway)).toMatchObject({ version: '1.1.0' });
    const current = await runCommand(registry.env, 'upgrade', '@test/weather', ...folder);
    expect(current.stdout).toBe('@test/weather: 1.1.0 is the newest version\n');
  });
});

describe('an installation that fails is explained', () => {
  const failing = async (registry: PackageRegistry, word: string, env: Record<string, string> = {}) => {
    const args = ['check', '--packages.folder', registry.folder, word];
    const { stdout, code } = await runCommand({ ...registry.env, ...env }, ...args);
    expect(code).toBe(1);
    expect(await draftsIn(registry)).toEqual([]);
    return stdout;
  };

  test('an unknown name, an unknown version, no program, and several programs', async () => {
    const registry = await startPackageRegistry(
      weather,
      { name: '@test/library', version: '1.0.0', bin: {} },
      { name: '@test/several', version: '1.0.0', bin: { one: 'one.js', two: 'two.js' } },
    );
    expect(await failing(registry, 'npx:no-such-name')).toContain('npm has no package no-such-name. Correct its name.');
    expect(await failing(registry, '@test/weather@9.9.9')).toContain('The package @test/weather has no version 9.9.9.');
    expect(await failing(registry, '@test/library')).toContain('has no program that can be started');
    const several = await failing(registry, '@test/several');
    expect(several).toContain('The package @test/several has several programs: one, two.');
    expect(several).toContain('npx --package=@test/several one');
    const gateway = await startInstalling(registry, ['--', 'npx', '--package=@test/several', 'two', 'x']);
    expect(await askServer(gateway)).toMatchObject({ version: '1.0.0', args: ['x'] });
  });

  test('no network, no npm, and a folder that cannot be written', async () => {
    const registry = await startPackageRegistry(weather);
    expect(await failing(registry, '@test/weather', { PATH: '/nowhere' })).toContain('npm was not found in PATH');
    const file = join(await mkdtemp(join(tmpdir(), 'gangway-file-')), 'file');
    await writeFile(file, '');
    onTestFinished(() => rm(join(file, '..'), { recursive: true }));
    const inFile = await runCommand(registry.env, 'check', '--packages.folder', `${file}/x`, '@test/weather');
    expect(inFile.stdout).toContain('choose another folder (--packages.folder)');
    await registry.close();
    expect(await failing(registry, '@test/weather')).toContain('npm cannot reach its registry.');
  });

  test('the gateway says so and ends if it is its only server, and serves the others if it is not', async () => {
    const registry = await startPackageRegistry(weather);
    await expect(startInstalling(registry, ['npx:no-such-name'])).rejects.toThrow('npm has no package no-such-name.');
    const mcpServers = { wrong: { command: 'npx:no-such-name' }, weather: { command: '@test/weather' } };
    const file = await changingFile(
      'gangway.json',
      JSON.stringify({ mcpServers, packages: { folder: registry.folder } }),
    );
    const gateway = await startGateway({ args: ['--config', file.path], env: registry.env });
    expect(await askServer(gateway, '/weather/mcp')).toMatchObject({ version: '1.0.0' });
    await waitFor(() => gateway.stderr().includes('npm has no package no-such-name.'), slowly);
  });
});

test('a port that is taken is told before a package is installed', async () => {
  const registry = await startPackageRegistry(weather);
  const other = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void other.close());
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  const args = ['--packages.folder', registry.folder, '@test/weather'];
  await expect(startGateway({ port, args, env: registry.env })).rejects.toThrow(
    /ended \(1\).*\n.*is in use\. .*--port/s,
  );
  expect(registry.requests).toEqual([]);
});

describe('an end in the middle', () => {
  test('[P10] a gateway that is killed leaves no process, and no package that is not whole', async () => {
    const registry = await startPackageRegistry(weather);
    const release = registry.hold();
    const env = { ...process.env, ...registry.env, GANGWAY_REPLAY_STORE: 'memory' };
    const args = [`${root}dist/main.js`, '--port', '0', '--admin-port', '0', '--packages.folder', registry.folder];
    const killed = spawn(process.execPath, [...args, '@test/weather'], { env, stdio: 'ignore' });
    await waitFor(() => registry.requests.length > 0, slowly);
    killed.kill('SIGKILL');
    await once(killed, 'exit');
    expect((await draftsIn(registry)).length).toBe(1);
    release();
    const gateway = await startInstalling(registry, ['@test/weather']);
    expect(await askServer(gateway)).toMatchObject({ version: '1.0.0' });
    expect(await draftsIn(registry)).toEqual([]);
    await gateway.stop();
    // Also at a start that installs nothing.
    await mkdir(join(registry.folder, `.new-${hostname()}-${killed.pid}-0`));
    await startInstalling(registry, ['@test/weather']);
    await waitFor(async () => (await draftsIn(registry)).length === 0, slowly);
  });
});

describe('what is no package', () => {
  /** A folder for PATH with a program that says how it was called. */
  async function folderWith(name: string): Promise<string> {
    const folder = await mkdtemp(join(tmpdir(), 'gangway-path-'));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const says = `#!/bin/sh\necho "called ${name} $*" >&2\nexit 3\n`;
    await writeFile(join(folder, name), says);
    await chmod(join(folder, name), 0o755);
    return folder;
  }

  test('npx runs a program of this machine itself, and whatever it is told with as-command', async () => {
    const registry = await startPackageRegistry({ name: 'local-tool', version: '1.0.0' });
    const called = async (tools: readonly string[], ...args: readonly string[]) => {
      const folders = await Promise.all(tools.map(folderWith));
      const env = { ...registry.env, PATH: [...folders, process.env['PATH']].join(':') };
      return (await runCommand(env, 'check', '--packages.folder', registry.folder, ...args)).stdout;
    };
    expect(await called(['npx', 'local-tool'], '--', 'npx', '-y', 'local-tool')).toContain('called npx -y local-tool');
    const asCommand = ['--defaults.packages', 'as-command', '--', 'npx', 'local-tool'];
    expect(await called(['npx'], ...asCommand)).toContain('called npx local-tool');
    expect(registry.requests).toEqual([]);
    expect(await called(['npx'], '--', 'npx', 'local-tool')).toContain('package: local-tool 1.0.0 from npm');
    const project = await mkdtemp(join(tmpdir(), 'gangway-project-'));
    onTestFinished(() => rm(project, { recursive: true, force: true }));
    await mkdir(join(project, 'node_modules', 'local-tool'), { recursive: true });
    expect(await called(['npx'], '--cwd', project, '--', 'npx', 'local-tool')).toContain('called npx local-tool');
  });

  test('npx runs what the gateway cannot install', async () => {
    const registry = await startPackageRegistry();
    const env = { PATH: [await folderWith('npx'), process.env['PATH']].join(':') };
    const args = ['check', '--packages.folder', registry.folder, '--', 'npx', 'no-such-name'];
    const { stdout } = await runCommand({ ...registry.env, ...env }, ...args);
    expect(stdout).toContain('called npx no-such-name');
  });

  test('a bare word is neither: the fault says how to name a package', async () => {
    const { stderr, code } = await runCommand({}, 'server-everything');
    expect(code).toBe(2);
    expect(stderr).toContain('for a package, write npx:server-everything');
    const refused = await runCommand({}, '--defaults.packages', 'as-command', '@test/weather');
    expect(refused.stderr).toContain('the option packages is as-command');
  });
});
