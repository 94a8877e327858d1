import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, it } from 'vitest';
import { type RunningProgram, Starter } from '../../../../../src/core/backend/stdio/starter/starter.ts';
import { waitFor } from '../../../../support/wait-for.ts';
import { endAfterTest } from '../harness.ts';

const starters: Starter[] = [];

afterEach(() => {
  for (const { pid } of starters.splice(0)) if (pid !== undefined) process.kill(pid, 'SIGKILL');
});

function open(): Starter {
  const starter = new Starter();
  starters.push(starter);
  return starter;
}

async function run(starter: Starter, script: string): Promise<RunningProgram> {
  const started = await starter.start({ command: '/bin/sh', args: ['-c', script], env: {} });
  if ('failure' in started) throw started.failure;
  endAfterTest(started.group.pid);
  return started;
}

function pidOf({ pid }: Starter): number {
  if (pid === undefined) throw new Error('no starter runs');
  return pid;
}

describe('the starter', () => {
  it('P1: loses nothing of what programs write and read while their pipes are handed over', async () => {
    const starter = open();
    const one = async (n: number) => {
      // Every other program has ended by the time that its pipes are handed over.
      const { stdin, stdout, stderr } = await run(
        starter,
        `echo out ${n}; echo err ${n} >&2; ${n % 2 ? 'exit' : 'cat'}`,
      );
      stdin.end('in');
      return Promise.all([text(stdout), text(stderr)]);
    };
    const outputs = await Promise.all(Array.from({ length: 60 }, (_, n) => one(n)));
    expect(outputs).toEqual(outputs.map((_, n) => [`out ${n}\n${n % 2 ? '' : 'in'}`, `err ${n}\n`]));
  });

  it('reports how a program ended, and that nothing of its group is left', async () => {
    const starter = open();
    const [exits, killed] = await Promise.all([run(starter, 'exit 3'), run(starter, 'kill -9 $$')]);
    expect(await exits.exited).toEqual({ exitCode: 3, signal: null });
    expect(exits.group.exists()).toBe(false);
    expect(await killed.exited).toEqual({ exitCode: null, signal: 'SIGKILL' });
  });

  it('[F12] if it cannot run, a start fails with the reason of the system', async () => {
    const starter = open();
    const failed = await starter.start({ command: 'no-such-command', args: [], env: {} });
    expect(failed).toEqual({ failure: expect.objectContaining({ code: 'ENOENT' }) });
  });
});

describe('[P10] a starter that is killed', () => {
  it('leaves running programs at work; their exits are noticed, and another starter takes its place', async () => {
    const starter = open();
    let lost = 0;
    starter.onLost = () => {
      lost += 1;
    };
    const [works, ends] = await Promise.all([run(starter, 'cat'), run(starter, 'exec sleep 60')]);
    const first = pidOf(starter);
    process.kill(first, 'SIGKILL');
    await waitFor(() => lost === 1);
    works.stdin.write('still here');
    const [chunk] = await works.stdout.take(1).toArray();
    expect(String(chunk)).toBe('still here');

    process.kill(ends.group.pid, 'SIGKILL');
    expect(await ends.exited).toEqual({ exitCode: null, signal: null });

    const next = await run(starter, 'exit 4');
    expect(pidOf(starter)).not.toBe(first);
    expect(await next.exited).toEqual({ exitCode: 4, signal: null });
    works.stdin.end();
    await works.exited;
  });

  it('is replaced for a program that was just asked for', async () => {
    const starter = open();
    starter.prepare();
    const start = run(starter, 'exit 5');
    process.kill(pidOf(starter), 'SIGKILL');
    expect(await (await start).exited).toEqual({ exitCode: 5, signal: null });
  });

  it('again and again: a start fails after the second time', async () => {
    const starter = open();
    starter.prepare();
    const killIt = () => starter.pid === undefined || process.kill(starter.pid, 'SIGKILL');
    starter.onLost = () => queueMicrotask(killIt);
    const start = starter.start({ command: '/bin/true', args: [], env: {} });
    killIt();
    const started = await start;
    expect(started).toEqual({ failure: expect.objectContaining({ code: 'ECHILD' }) });
    starter.onLost = undefined;
  });
});
