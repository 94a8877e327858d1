import { type ChildProcess, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { onTestFinished } from 'vitest';
import { waitFor } from './wait-for.ts';

/** True if a program is on the PATH. */
export function hasProgram(program: string): boolean {
  try {
    execFileSync(program, ['-v'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** Ends a balancer, and removes its folder, after the test. */
export function endAfterTest(balancer: ChildProcess, signal: NodeJS.Signals, folder: string): void {
  const exited = once(balancer, 'exit');
  onTestFinished(async () => {
    balancer.kill(signal);
    await exited;
    rmSync(folder, { recursive: true, force: true });
  });
}

/** Resolves when a balancer passes a GET of this URL on to a gateway. */
export async function waitUntilUp(url: string, what: string, deadlineMs?: number): Promise<void> {
  const isUp = () =>
    fetch(url).then(
      ({ ok }) => ok,
      () => false,
    );
  await waitFor(isUp, { what, ...(deadlineMs !== undefined && { deadlineMs }) });
}
