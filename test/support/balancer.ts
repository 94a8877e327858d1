import { type ChildProcess, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { expect, onTestFinished } from 'vitest';
import type { Cluster } from './cluster.ts';
import { initialize } from './http-client.ts';
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

/** The peers of an instance that messages were sent to. */
async function peersOf(cluster: Cluster, instance: number): Promise<unknown> {
  const response = await fetch(`${cluster.instances[instance]?.baseUrl}/readyz`);
  return ((await response.json()) as { peers?: unknown }).peers;
}

/**
 * Expects that a balancer in front of two gateways brings the requests of each session to its owner,
 * and to the other gateway once the owner is lost.
 * @param url the endpoint at the balancer
 */
export async function expectAffinity(cluster: Cluster, url: string): Promise<void> {
  // An odd number: without affinity, a session's requests then go to both gateways in turn.
  const sessions = await Promise.all(Array.from({ length: 5 }, () => initialize(url)));
  const callAll = async (text: string): Promise<void> => {
    for (const session of sessions)
      expect(await session.callTool('echo', { text })).toMatchObject({ content: [{ text }] });
  };
  for (let round = 0; round < 5; round += 1) await callAll(`round ${round}`);
  const nobody = { direct: 0, store: 0 };
  expect([await peersOf(cluster, 0), await peersOf(cluster, 1)]).toEqual([nobody, nobody]);
  await cluster.kill(0);
  const goesOn = async (session: (typeof sessions)[number]): Promise<boolean> =>
    (await session.request('ping').catch(() => undefined))?.status === 200;
  for (const session of sessions)
    await waitFor(() => goesOn(session), { what: 'the session to go on', deadlineMs: 30_000, intervalMs: 100 });
  await callAll('with the other gateway');
}
