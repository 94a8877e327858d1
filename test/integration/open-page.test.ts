import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { everythingFixture, startGateway } from '../support/gateway.ts';
import { findFreePort } from '../support/redis-process.ts';
import { statusPageOf } from '../support/status-page.ts';
import { waitFor } from '../support/wait-for.ts';

/** A desktop whose `xdg-open` records what it gets. */
function createDesktop(exitCode = 0) {
  const folder = mkdtempSync(join(tmpdir(), 'gangway-desktop-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const program = join(folder, 'xdg-open');
  const record = join(folder, 'record');
  writeFileSync(
    program,
    `#!/bin/sh\n{ echo "$@"; env; } > ${record}.new; mv ${record}.new ${record}\nexit ${exitCode}\n`,
  );
  chmodSync(program, 0o755);
  const env = { PATH: `${folder}:${process.env['PATH']}`, DISPLAY: ':99', WAYLAND_DISPLAY: undefined };
  return { env, record };
}

const start = async (env: Record<string, string | undefined>, args: readonly string[] = []) =>
  startGateway({ adminPort: await findFreePort(), command: everythingFixture, args: ['--open', ...args], env });

test('the browser gets a file that only this user can read, which leads to the page', async () => {
  const { env, record } = createDesktop();
  const gateway = await start({ ...env, GANGWAY_LOG_LEVEL: 'info' });
  await waitFor(() => existsSync(record), { what: 'the browser' });
  const [file = '', ...variables] = readFileSync(record, 'utf8').trim().split('\n');
  const { href } = statusPageOf(gateway);
  expect(href).toMatch(/#[\w-]{43}$/);
  expect(readFileSync(file, 'utf8')).toContain(`content="0; url=${href}"`);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(variables.filter((line) => line.startsWith('GANGWAY_'))).toEqual([]);
  expect(variables.join('\n')).not.toContain(new URL(href).hash);
  await gateway.stop();
  expect(existsSync(file)).toBe(false);
});

const warningOf = (gateway: { logs(): Record<string, unknown>[] }): string | undefined =>
  gateway.logs().find(({ msg }) => msg === '--open cannot open the status page')?.['why'] as string | undefined;

test('without a desktop, and with a browser that fails, a warning says why, and the gateway works', async () => {
  const { env } = createDesktop(4);
  const [bare, failing] = [await start({ ...env, DISPLAY: undefined }), await start(env)];
  await waitFor(() => warningOf(bare) !== undefined && warningOf(failing) !== undefined, { what: 'both warnings' });
  expect(warningOf(bare)).toBe('This machine has no desktop (DISPLAY and WAYLAND_DISPLAY are not set).');
  expect(warningOf(failing)).toBe('xdg-open ended with code 4.');
  expect((await fetch(new URL('/healthz', statusPageOf(bare)))).status).toBe(200);
});

test('without a status page, a warning says where it is turned on', async () => {
  const { env, record } = createDesktop();
  const gateway = await startGateway({ command: everythingFixture, args: ['--open'], env });
  await waitFor(() => warningOf(gateway) !== undefined, { what: 'the warning' });
  expect(warningOf(gateway)).toBe('The page cannot be opened here: see --admin-port and --listen.adminHost.');
  expect(existsSync(record)).toBe(false);
});
