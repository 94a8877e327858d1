import { describe, expect, test } from 'vitest';
import { type Gateway, root, startGateway } from '../support/gateway.ts';
import { initialize } from '../support/http-client.ts';
import { findStarter, listProcesses, stillAlive, waitForDescendants, waitUntilGone } from '../support/processes.ts';
import { loadMs } from '../support/wait-for.ts';
import { isFull } from './memory.ts';
import { restored, startMoody, statusOf } from './moody.ts';

const graceMs = 200;
/** Both periods, and what SIGKILL takes on a busy machine. */
const endMs = 2 * graceMs + loadMs;

const start = (mode: string): Promise<Gateway> =>
  startGateway({
    args: ['--timeouts.grace', `${2 * graceMs}ms`],
    command: ['/bin/sh', `${root}test/fixtures/children/stubborn-server.sh`, mode],
  });

/** The ended processes for which the gateway, or its starter, has not waited. */
async function zombiesOf(pid: number) {
  const parents = [pid, (await findStarter(pid))?.pid];
  return (await listProcesses()).filter(({ ppid, isZombie }) => isZombie && parents.includes(ppid));
}

describe('a child that will not end', () => {
  const modes = [
    ['ignores the end of its input', 'deaf', 1],
    ['ignores SIGTERM too', 'stubborn', 1],
    ['ignores both, and so does what it forked', 'forks', 2],
    ['ends and leaves what it forked', 'leaves', 2],
  ] as const;

  test('[F19] [P10] of each kind: the end of its session leaves nothing', async () => {
    await Promise.all(
      modes.map(async ([_, mode, count]) => {
        const gateway = await start(mode);
        const session = await initialize(gateway.url);
        const family = await waitForDescendants(gateway.pid, count);
        expect((await session.delete()).status).toBe(200);
        await waitUntilGone(family, { deadlineMs: endMs });
        expect(await zombiesOf(gateway.pid)).toEqual([]);
      }),
    );
  });

  test('[F19] [P9] [P10] of each kind: the end of the gateway leaves nothing', async () => {
    await Promise.all(
      modes.map(async ([_, mode, count]) => {
        const gateway = await start(mode);
        for (let n = 0; n < 3; n++) await initialize(gateway.url);
        const family = await waitForDescendants(gateway.pid, 3 * count);
        const before = performance.now();
        expect(await gateway.stop()).toEqual({ code: 0, signal: null });
        expect(performance.now() - before).toBeLessThan(endMs);
        expect(await stillAlive(family)).toEqual([]);
      }),
    );
  });
});

describe('a grandchild that holds stdout', () => {
  test('[F19] [P10] ends with the session, and does not hold up its end', async () => {
    const { gateway } = await startMoody();
    const session = await initialize(gateway.url);
    for (let n = 0; n < 3; n++) await session.callTool('fork');
    const family = await waitForDescendants(gateway.pid, 4);
    await session.delete();
    await waitUntilGone(family, { deadlineMs: endMs });
  });

  test('[F19] [P10] ends when its parent crashes, each time, and no zombie is left', async () => {
    const cycles = isFull ? 200 : 5;
    const moody = await startMoody({}, { args: ['--log-level', 'info'] });
    for (let n = 0; n < cycles; n++) {
      const session = await initialize(moody.gateway.url);
      await session.callTool('fork');
      const family = await waitForDescendants(moody.gateway.pid, 2);
      moody.kill();
      await restored(moody.gateway, n + 1);
      await waitUntilGone(family, { deadlineMs: endMs });
      expect(await statusOf(session)).toBe(200);
      await session.delete();
      await waitForDescendants(moody.gateway.pid, 0);
    }
    expect(await zombiesOf(moody.gateway.pid)).toEqual([]);
  }, 300_000);
});
