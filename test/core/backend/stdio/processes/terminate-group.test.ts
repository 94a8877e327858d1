import { afterEach, describe, expect, it, vi } from 'vitest';
import { ProcessGroup } from '../../../../../src/core/backend/stdio/processes/process-group.ts';
import { asMessage } from '../../../../support/as-message.ts';
import { childPath, endAfterTest, isRunning, openChild, openProgram, stopped } from '../harness.ts';

afterEach(() => vi.restoreAllMocks());

describe('terminate', () => {
  it('P10: a server that obeys the end of its input gets no signal and no delay', async () => {
    const kill = vi.spyOn(process, 'kill');
    const { backend, messages, ends } = openChild('echo', [], { stdinCloseGraceMs: 10_000 });
    backend.send(asMessage('{}'));
    await messages.next();
    const start = performance.now();
    await backend.close();
    expect(performance.now() - start).toBeLessThan(8_000); // the grace is longer
    expect(ends).toMatchObject([{ exitCode: 0 }]);
    expect(kill.mock.calls.filter(([, signal]) => signal !== 0)).toEqual([]);
  });

  it('P10: stdin closed, then SIGTERM, then SIGKILL, each after its grace', async () => {
    const kill = vi.spyOn(process, 'kill');
    const { backend, messages, ends } = openChild('stubborn', [], { stdinCloseGraceMs: 100, terminateGraceMs: 150 });
    await messages.next();
    const start = performance.now();
    await backend.close();
    expect(performance.now() - start).toBeGreaterThan(240);
    const group = -(backend.pid ?? 0);
    expect(kill.mock.calls.filter(([, signal]) => signal !== 0)).toEqual([
      [group, 'SIGTERM'],
      [group, 'SIGKILL'],
    ]);
    expect(ends).toMatchObject([{ reason: 'closed', signal: 'SIGKILL' }]);
  });

  it('P10, fault 19: the server behind a wrapper is ended with it', async () => {
    const { backend, messages } = openChild('wraps', [], { stdinCloseGraceMs: 20, terminateGraceMs: 50 });
    const server = Number(await messages.next());
    endAfterTest(server);
    expect(await isRunning(server)).toBe(true);
    await backend.close();
    expect(await isRunning(server)).toBe(false);
  });

  it('P10, fault 19: what a server that exited by itself left in its group is ended without a call of close', async () => {
    const opened = openChild('leaves-grandchild', [], { terminateGraceMs: 50 });
    const [grandchild] = JSON.parse(await opened.messages.next());
    endAfterTest(grandchild);
    await opened.end();
    await stopped(grandchild);
  });

  it('P10, fault 19: twenty cycles, half of them cut short, leave no process', async () => {
    const cycle = async (n: number) => {
      const opened = openChild('wraps', [], { stdinCloseGraceMs: 10, terminateGraceMs: 10 });
      const server = Number(await opened.messages.next());
      endAfterTest(server);
      if (n % 2 === 0) process.kill(opened.backend.pid ?? 0, 'SIGKILL');
      await opened.backend.close();
      return [opened.backend.pid ?? 0, server];
    };
    for (let n = 0; n < 20; n += 4) {
      const pids = (await Promise.all([n, n + 1, n + 2, n + 3].map(cycle))).flat();
      for (const pid of pids) expect(await isRunning(pid)).toBe(false);
    }
  });

  it.runIf(process.platform === 'linux')(
    'P10, fault 19: a zombie that nobody waits for does not hold up the end for ever',
    async () => {
      const opened = openProgram({
        command: 'perl',
        args: [childPath('unreaped-zombie.pl')],
        terminateGraceMs: 60_000,
      });
      endAfterTest(Number(await opened.messages.next()));
      const start = performance.now();
      await opened.backend.close();
      expect(performance.now() - start).toBeLessThan(5_000); // the grace below is a minute
      expect(opened.ends).toHaveLength(1);
    },
  );
});

describe('groups', () => {
  it.each([0, 1, -5, 1.5, Number.NaN])('P10: %d is never signalled', (pid) => {
    expect(() => new ProcessGroup(pid, () => undefined)).toThrow(RangeError);
  });

  it.each(['ESRCH', 'EPERM'])(
    'P10: after %s the number is never used again, as it can be another’s by then',
    (code) => {
      const kill = vi.spyOn(process, 'kill').mockImplementation(() => {
        throw Object.assign(new Error(code), { code });
      });
      const forgotten: number[] = [];
      const group = new ProcessGroup(2 ** 30, (pid) => forgotten.push(pid));
      expect(group.exists()).toBe(false);
      group.signal('SIGKILL');
      group.forget();
      expect(forgotten).toEqual([2 ** 30]);
      expect(kill).toHaveBeenCalledTimes(1);
      expect(group.lastSignal).toBeUndefined();
    },
  );
});
