import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { findSetpriv, launcherOf } from '../../../../src/backend/stdio/launch/setpriv.ts';
import { openProgram } from '../harness.ts';

const found = findSetpriv(process.env['PATH']);

let directory = '';
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'gangway-setpriv-'));
});
afterAll(() => rm(directory, { recursive: true }));

async function script(name: string, text: string): Promise<string> {
  const path = join(directory, name);
  await writeFile(path, text);
  await chmod(path, 0o755);
  return path;
}

describe.runIf(process.platform === 'linux')('findSetpriv', () => {
  it('takes the first of PATH that works, by its full path', async () => {
    await script('setpriv', '#!/bin/sh\necho "unrecognized option: pdeathsig" >&2; exit 1\n'); // as BusyBox
    const path = process.env['PATH'];
    expect(findSetpriv(`${directory}:.::${path}`)).toBe(found);
    expect(found).toMatch(/^\/.*\/setpriv$/);
  });

  it.each([undefined, '', '.', '/no/such'])('finds none in PATH %s', (path) => {
    expect(findSetpriv(path)).toBeUndefined();
  });

  it('is of no use in a worker, whose end would count as that of the gateway', async () => {
    vi.resetModules();
    vi.doMock('node:worker_threads', () => ({ isMainThread: false }));
    const inWorker = await import('../../../../src/backend/stdio/launch/setpriv.ts');
    vi.doUnmock('node:worker_threads');
    expect(inWorker.findSetpriv(process.env['PATH'])).toBeUndefined();
  });
});

describe.runIf(found !== undefined)('a program started by setpriv', () => {
  const launcher = launcherOf(found ?? '', 'SIGTERM');

  it('P10: has the parent death signal', async () => {
    const opened = openProgram({ command: found ?? '', args: ['--dump'], launcher });
    await opened.end();
    expect(opened.messages.items).toContain('Parent death signal: TERM');
  });

  it('has the pid, the arguments and the exit code of its own', async () => {
    const args = ['-c', 'echo "$$ $0 $1"; exit 3', '--', '--pdeathsig'];
    const opened = openProgram({ command: 'sh', args, launcher });
    expect(await opened.end()).toMatchObject({ reason: 'exited', exitCode: 3 });
    expect(opened.messages.items).toEqual([`${opened.backend.pid} -- --pdeathsig`]);
  });

  it('fault 12: whose loader is missing fails as it does without', async () => {
    const program = await readFile('/bin/true', 'latin1');
    const broken = program.replace(/\/lib[\w./-]*\/ld-[\w.-]+/, (path) => `${path.slice(0, -1)}?`);
    expect(broken).not.toBe(program);
    const path = join(directory, 'broken');
    await writeFile(path, broken, 'latin1');
    await chmod(path, 0o755);
    const end = await openProgram({ command: path, launcher }).end();
    expect(end).toMatchObject({ reason: 'failed', detail: expect.stringContaining('its loader does not') });
    expect(end.detail).toBe((await openProgram({ command: path }).end()).detail);
  });

  it.each([
    [127, 'setpriv: a\nsetpriv: b'],
    [127, 'sh: x: not found'],
    [1, 'setpriv: failed to execute x'],
  ])('fault 12: exit code %i after %j is its own', async (exitCode, output) => {
    const args = ['-c', 'printf "$1\\n" >&2; exit $2', '-', output, String(exitCode)];
    const end = await openProgram({ command: 'sh', args, launcher }).end();
    expect(end).toMatchObject({ reason: 'exited', exitCode });
  });
});
