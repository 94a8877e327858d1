import { fileURLToPath } from 'node:url';
import { afterEach } from 'vitest';
import type { Backend, BackendEnd, BackendEvents } from '../../../../src/core/backend/backend.ts';
import { stdoutPrefix } from '../../../../src/core/backend/stdio/pipes/early-lines.ts';
import { openStdio, type StdioOptions } from '../../../../src/core/backend/stdio/stdio-backend.ts';
import { listProcesses } from '../../../support/processes.ts';
import { createInbox, type Inbox, waitFor, withDeadline } from '../../../support/wait-for.ts';

/** A backend on one of the small programs, and what it reported. */
export interface Opened {
  readonly backend: Backend;
  readonly messages: Inbox<string>;
  readonly stderr: Inbox<string>;
  /** How many messages each call of `onMessages` brought. */
  readonly bursts: number[];
  readonly ends: BackendEnd[];
  end(): Promise<BackendEnd>;
}

export const childPath = (name: string): string =>
  fileURLToPath(new URL(`../../../fixtures/children/${name}`, import.meta.url));

const strayPids = new Set<number>();

/** Ends this process after the test even if the gateway did not. */
export const endAfterTest = (pid: number): void => {
  strayPids.add(pid);
};

afterEach(() => {
  for (const pid of strayPids) {
    for (const target of [-pid, pid]) {
      try {
        process.kill(target, 'SIGKILL');
      } catch {
        // It has ended, as it should.
      }
    }
  }
  strayPids.clear();
});

/** Opens a backend on any program, with short periods of grace. */
export function openProgram(
  options: Partial<StdioOptions> & Pick<StdioOptions, 'command'>,
  onMessages: BackendEvents['onMessages'] = () => undefined,
): Opened {
  const messages = createInbox<string>();
  const stderr = createInbox<string>();
  const bursts: number[] = [];
  const ends: BackendEnd[] = [];
  let tellEnd: (end: BackendEnd) => void;
  const ended = new Promise<BackendEnd>((resolve) => {
    tellEnd = resolve;
  });
  const backend = openStdio(
    {
      args: [],
      env: { PATH: process.env['PATH'] ?? '' },
      stdinCloseGraceMs: 200,
      terminateGraceMs: 200,
      onStderr: (line) => stderr.push(line),
      ...options,
      onStarted(pid) {
        endAfterTest(pid);
        options.onStarted?.(pid);
      },
    },
    {
      onMessages(found) {
        if (ends.length > 0) throw new Error('onMessages after onEnd');
        bursts.push(found.length);
        for (const { text } of found) messages.push(text.toString());
        onMessages(found);
      },
      onNoise: (text) => messages.push(text.toString()),
      onUnanswered() {
        throw new Error('a process answers all or is lost');
      },
      onEnd(told) {
        // The lines of most children are no messages. The test of the last output has its own events.
        const lastOutput = told.lastOutput?.filter((line) => !line.startsWith(stdoutPrefix)) ?? [];
        const end = { ...told, lastOutput };
        ends.push(end);
        tellEnd(end);
      },
    },
  );
  return {
    backend,
    messages,
    stderr,
    bursts,
    ends,
    end: () => withDeadline(ended, { what: 'the end of the backend' }),
  };
}

/** Opens a backend on a program of `test/fixtures/children/`. */
export const openChild = (
  name: string,
  args: readonly string[] = [],
  options: Partial<StdioOptions> = {},
  onMessages?: BackendEvents['onMessages'],
): Opened =>
  openProgram({ command: process.execPath, args: [childPath(`${name}.mjs`), ...args], ...options }, onMessages);

/** Whether the process runs: a zombie does not. */
export async function isRunning(pid: number): Promise<boolean> {
  return (await listProcesses()).some((found) => found.pid === pid && !found.isZombie);
}

/** Resolves when the process does not run any more. */
export const stopped = (pid: number) =>
  waitFor(async () => !(await isRunning(pid)), { what: `the end of process ${pid}`, intervalMs: 20 });
