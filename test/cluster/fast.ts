import type { OutgoingHttpHeaders } from 'node:http';
import { expect } from 'vitest';
import { type Cluster, type ClusterOptions, startCluster } from '../support/cluster.ts';
import { open } from '../support/http-client.ts';
import { isAtLeast } from '../support/log-levels.ts';
import { descendantsOf, type ProcessInfo } from '../support/processes.ts';
import { waitFor } from '../support/wait-for.ts';

export const leaseMs = 1_500;

/** Leases that are short, so that a test need not wait long for what a lease is about. */
export const shortLeases = ['--cluster.lease', `${leaseMs}ms`] as const;

interface FastOptions extends Omit<ClusterOptions, 'args'> {
  readonly args?: readonly string[];
}

/** Three instances, unless told otherwise, with short leases. */
export const startFastCluster = ({ args = [], ...options }: FastOptions = {}): Promise<Cluster> =>
  startCluster({ ...options, args: [...shortLeases, ...args] });

/** The endpoint of an instance, past the balancer. */
export function urlOf({ instances }: Cluster, instance: number): string {
  const gateway = instances[instance];
  if (gateway === undefined) throw new Error(`There is no instance ${instance}`);
  return gateway.url;
}

/** The endpoints of the instances, past the balancer, beginning with this one. */
export function instancesOf({ instances }: Cluster, first = 0): readonly [string, string, string] {
  const urls = [...instances.slice(first), ...instances.slice(0, first)].map(({ url }) => url);
  return urls as [string, string, string];
}

/** A call of a tool. */
export const call = (id: string | number, name: string, args: object = {}) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: args, _meta: { progressToken: id } },
});

/**
 * Resolves when the instances take a session for unknown that Redis does not know: while its data are young, owners may
 * have to register theirs again, and a request waits.
 */
export async function settle(cluster: Cluster, headers: OutgoingHttpHeaders = {}): Promise<void> {
  for (const { url } of cluster.instances) {
    const isSettled = async () => (await statusOf(url, 'no-such-session', 'POST', headers)) === 404;
    await waitFor(isSettled, { what: `404 of ${url}` });
  }
}

/** The status that a ping gets in a session. */
export async function statusOf(
  url: string,
  sessionId: string,
  method = 'POST',
  headers: OutgoingHttpHeaders = {},
): Promise<number> {
  const exchange = await open(url, {
    method,
    headers: {
      'Content-Type': 'application/json',
      Accept: method === 'GET' ? 'text/event-stream' : 'application/json, text/event-stream',
      'Mcp-Session-Id': sessionId,
      ...headers,
    },
    ...(method === 'POST' && { body: { jsonrpc: '2.0', id: 'status', method: 'ping' } }),
  });
  exchange.drop();
  return exchange.status;
}

/** What the instances have started and still lives. */
export async function childrenOf(cluster: Cluster): Promise<ProcessInfo[]> {
  return (await Promise.all(cluster.instances.map(({ pid }) => descendantsOf(pid)))).flat();
}

/** What instances logged as gone wrong with a session or with the cluster. */
export const failuresOf = (cluster: Cluster): Record<string, unknown>[] =>
  cluster.instances.flatMap((gateway) => gateway.logs()).filter((line) => isAtLeast(line, 'error'));

/** Stops a cluster in which nothing must have gone wrong, as its instances see it. */
export async function stopSound(cluster: Cluster | undefined): Promise<void> {
  const failures = cluster === undefined ? [] : failuresOf(cluster);
  await cluster?.stop();
  expect(failures).toEqual([]);
}
