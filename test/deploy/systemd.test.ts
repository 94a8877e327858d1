import { execFile, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { readConfiguration } from '../../src/config/config.ts';
import { gatewayOptions } from '../../src/config/options/options.ts';
import { root } from '../support/gateway.ts';

/** deploy/systemd: that the unit fits to what the gateway does, and that systemd understands it. */

const unit = readFileSync(`${root}deploy/systemd/mcp-gangway.service`, 'utf8');
const hasSystemd = spawnSync('systemd-analyze', ['--version'], { stdio: 'ignore' }).error === undefined;

/** The value of a setting that stands there once. */
function setting(name: string): string {
  const values = unit.split('\n').filter((line) => line.startsWith(`${name}=`));
  expect(values, name).toHaveLength(1);
  return values[0]?.slice(name.length + 1) ?? '';
}

describe('the unit of systemd', () => {
  it('starts the gateway with a command line that it accepts', () => {
    const [program, ...argv] = setting('ExecStart').split(' ');
    const { bin } = JSON.parse(readFileSync(`${root}package.json`, 'utf8'));
    expect(Object.keys(bin).map((name) => `/usr/bin/${name}`)).toContain(program);
    const file = JSON.stringify({ mcpServers: { everything: { command: 'npx' } } });
    expect(readConfiguration({ argv, env: {}, readFile: () => file })).toMatchObject({ ok: true, command: 'serve' });
  });

  it('takes secrets from files, and none from its environment', () => {
    expect(unit).not.toMatch(/^(EnvironmentFile|SetCredential)=/m);
    const [id, folder = ''] = setting('LoadCredential').split(':');
    // systemd names a credential after the id and the file of the folder.
    const [named = ''] = /\$\{file:[^}]+\}/.exec(unit) ?? [];
    expect(named).toBe(`\${file:/run/credentials/mcp-gangway.service/${id}_redis-url}`);
    const page = readFileSync(`${root}docs/deploy.md`, 'utf8');
    expect(page).toContain(`"redis": "${named}"`);
    expect(page).toContain(`install -d -m 700 ${folder} `);
    const file = JSON.stringify({ cluster: { redis: named }, mcpServers: { everything: { command: 'npx' } } });
    const files = new Map([
      ['/etc/mcp-gangway/gangway.json', file],
      [named.slice('${file:'.length, -1), 'redis://:password@redis:6379\n'],
    ]);
    const [, ...argv] = setting('ExecStart').split(' ');
    const readFile = (path: string) => files.get(path) ?? expect.fail(`${path} is not there`);
    const read = readConfiguration({ argv, env: {}, readFile });
    expect(read).toMatchObject({ ok: true, config: { cluster: { redis: 'redis://:password@redis:6379' } } });
  });

  it('lets it end its servers itself, in the time that it takes for that', () => {
    expect(setting('KillMode')).toBe('mixed');
    expect(Number(setting('TimeoutStopSec'))).toBeGreaterThanOrEqual(gatewayOptions.timeouts.drain.default / 1000 + 5);
  });

  it('starts it again, but not with a configuration that is wrong', () => {
    expect(setting('Restart')).toBe('always');
    expect(setting('RestartPreventExitStatus')).toBe('2');
    expect(setting('ExecReload')).toBe('/bin/kill -HUP $MAINPID');
  });

  it('lets it write to its own folder, which is its home directory', () => {
    const home = `%S/${setting('StateDirectory')}`;
    expect(setting('WorkingDirectory')).toBe(home);
    expect(setting('Environment').split(' ')).toContain(`HOME=${home}`);
    expect(unit).not.toContain('ReadWritePaths=/');
  });

  // Not part of CI where there is no systemd, as in containers.
  it.runIf(hasSystemd)('is understood by systemd, which finds nothing to say against it', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'gangway-unit-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const path = join(folder, 'mcp-gangway.service');
    // The program need not be installed on this machine.
    await writeFile(path, unit.replace(/^ExecStart=\S+/m, `ExecStart=${process.execPath}`));
    const { stdout, stderr } = await promisify(execFile)('systemd-analyze', ['verify', '--man=no', path]);
    // Of the units that it depends on, which are the machine's, systemd may have its own opinion.
    expect((stdout + stderr).split('\n').filter((line) => line.includes('mcp-gangway'))).toEqual([]);
    // Of 10, where 9.6 is a service without any of it.
    await promisify(execFile)('systemd-analyze', ['security', '--offline=yes', '--threshold=20', path]);
  });
});
