import type { Cluster } from '../support/cluster.ts';
import { listen } from '../support/resuming-client.ts';
import { waitFor } from '../support/wait-for.ts';

export const leaseMs = 1_500;

/** For tests of faults: short leases, and no long waits for a Redis that is away. */
export const faultArgs = [
  ...['--cluster.lease', `${leaseMs}ms`],
  ...['--sse.reconnectDelay', '100ms', '--replay.maxSize', '800MiB'],
] as const;

/** P3: a loss is noticed and answered within this time. */
export const noticedMs = leaseMs + 2_000;

/** The endpoint of an instance, past the balancer. */
export function urlOf({ instances }: Cluster, instance: number): string {
  const gateway = instances[instance];
  if (gateway === undefined) throw new Error(`There is no instance ${instance}`);
  return gateway.url;
}

/** Resolves when instances would take over sessions: the data of their Redis, and they, are old enough. */
export async function mayTakeOver({ instances }: Cluster): Promise<void> {
  const isSettled = async (url: string): Promise<boolean> => {
    const headers = { 'Mcp-Session-Id': 'no-such-session' };
    const { status } = await listen(url, { headers, body: { jsonrpc: '2.0', id: 1, method: 'ping' } }).ended;
    return status === 404;
  };
  await Promise.all(
    instances.map(({ url }) =>
      waitFor(() => isSettled(url), { what: 'unknown sessions to be told', deadlineMs: 30_000 }),
    ),
  );
}

/** Resolves when so much time has passed since: for faults whose length is what they are about. */
export const untilPassed = (since: number, ms: number): Promise<true> =>
  waitFor(() => performance.now() - since >= ms, { what: `${ms} ms to pass`, deadlineMs: ms + 10_000 });

/** The status that an instance has on a path such as `/readyz`, and what it says; 0 if it does not answer. */
export async function healthOf(baseUrl: string, path: string): Promise<{ status: number; said: string }> {
  try {
    const response = await fetch(`${baseUrl}${path}`, { signal: AbortSignal.timeout(5_000) });
    return { status: response.status, said: ((await response.json()) as { status: string }).status };
  } catch {
    return { status: 0, said: 'nothing' };
  }
}
