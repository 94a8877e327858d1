import { readFile } from 'node:fs/promises';
import { waitFor } from './wait-for.ts';

/** Freezes a process (SIGSTOP) and resolves when it has stopped. It keeps its sockets and runs no code. */
export async function freeze(pid: number): Promise<void> {
  process.kill(pid, 'SIGSTOP');
  if (process.platform !== 'linux') return;
  await waitFor(async () => 'tTZX'.includes(await stateOf(pid)), { what: `process ${pid} to stop`, intervalMs: 1 });
}

/** Lets a frozen process run again. */
export function thaw(pid: number): void {
  process.kill(pid, 'SIGCONT');
}

/** The state as proc(5) has it: T is stopped, Z and X have ended. */
async function stateOf(pid: number): Promise<string> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  return stat.slice(stat.lastIndexOf(')') + 2, stat.lastIndexOf(')') + 3);
}
