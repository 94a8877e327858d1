import { setTimeout as delay } from 'node:timers/promises';
import { initialize, post } from '../support/http-client.ts';
import { callModern } from '../support/modern-client.ts';
import { waitFor } from '../support/wait-for.ts';
import type { Ledger } from './ledger.ts';
import { headersOf } from './legacy-call.ts';
import { type createSampler, deadMarks, expiringKeys, isLasting, type Sample } from './samples.ts';
import { idleMs, keptMs, loadMs, noticedMs, type Stage } from './stage.ts';

/**
 * Connections that nobody uses stay open for a while: those between instances for 30 s. A busy machine makes more of them,
 * since a late answer keeps its connection.
 */
export const lingerMs = 35_000;
/** A descriptor that is still there after so long has nobody who closes it. */
const longestLingerMs = 2 * lingerMs;
/** Descriptors that a gateway may have more than at first: a connection that was just opened again, to Redis for example. */
const spareDescriptors = 3;

/**
 * Lets each instance do what it does once, and then goes on: it starts the modern server, reaches the remote one, and has a
 * connection to each other instance. What is counted before that would be too little.
 */
export async function useOnce({ cluster: { instances } }: Stage): Promise<void> {
  for (const { baseUrl } of instances) await callModern(`${baseUrl}/modern/mcp`, 'echo', { text: 'a' });
  for (const owner of instances) {
    const session = await initialize(`${owner.baseUrl}/remote/mcp`);
    for (const { baseUrl } of instances) {
      const ping = { jsonrpc: '2.0', id: 'once', method: 'ping' };
      const isAnswered = async (): Promise<boolean> =>
        (await post(`${baseUrl}/remote/mcp`, ping, headersOf(session))).status === 200;
      await waitFor(isAnswered, { what: 'a request to the owner', intervalMs: 500 });
    }
    await session.delete();
  }
}

const ofSessions = ({ redis }: Sample): number =>
  [...(redis?.keys ?? [])]
    .filter(([kind]) => kind.startsWith('session') && !isLasting(kind))
    .reduce((sum, [, count]) => sum + count, 0);

/** What Redis keeps of an instance that was killed is gone within two minutes. */
const instanceMs = 120_000;

/** How many keys of a kind there may be at the end. A busy machine may have no lease at first, but each instance has one. */
const mayBe = ({ redis, gateways }: Sample, kind: string): number =>
  Math.max(redis?.keys.get(kind) ?? 0, kind.startsWith('instance') ? gateways.length : 0);

const hasLostInstances = ({ redis }: Sample, base: Sample): boolean =>
  [...(redis?.keys ?? [])].some(
    ([kind, count]) => kind.startsWith('instance') && kind !== deadMarks && count > mayBe(base, kind),
  );

/**
 * Resolves when nothing is left of clients that are gone, or when it should be: sessions that they left end when they have been
 * idle, and what Redis keeps of those that nobody asks for later still.
 */
export async function comeToRest(
  stage: Stage,
  { samples }: ReturnType<typeof createSampler>,
  base: Sample,
): Promise<void> {
  const until = performance.now() + Math.max(2 * idleMs + keptMs, instanceMs) + 30_000;
  const isAtRest = async (): Promise<boolean> => {
    const last = samples.at(-1);
    if (last?.redis === undefined || ofSessions(last) > ofSessions(base)) return false;
    if (hasLostInstances(last, base)) return false;
    if ((await stage.upstream.descendants()).length > 0) return false;
    return last.gateways.every((used, index) => (used?.children ?? 0) <= (base.gateways[index]?.children ?? 0));
  };
  while (performance.now() < until && !(await isAtRest())) await delay(1_000);
  await delay(lingerMs);
  const closedUntil = performance.now() + longestLingerMs - lingerMs;
  while (performance.now() < closedUntil && moreThan(base, samples.at(-1) as Sample).length > 0) await delay(1_000);
}

/** What instances use at the end and did not use at first, a sentence each. */
export function moreThan(base: Sample, end: Sample): readonly string[] {
  const found: string[] = [];
  for (const [index, used] of end.gateways.entries()) {
    const before = base.gateways[index];
    if (used === undefined || before === undefined) {
      found.push(`instance ${index} is not there at the end`);
      continue;
    }
    for (const [what, spare] of [
      ['children', 0],
      ['descriptors', spareDescriptors],
    ] as const) {
      if (used[what] > before[what] + spare)
        found.push(`instance ${index} has ${used[what]} ${what}, ${before[what]} at first`);
    }
  }
  return found;
}

/** How many sessions and streams clients have opened, or may have opened. */
export function openedSessions({ counts }: Pick<Ledger, 'counts'>, recorded: number): number {
  let opened = recorded;
  for (const [kind, outcomes] of counts) {
    if (!/: open$|^clients that disconnect$/.test(kind)) continue;
    for (const count of outcomes.values()) opened += count;
  }
  return opened;
}

/** A stream of HTTP+SSE that breaks is opened again without being counted. */
const keysPerOpened = 2;
/** The sessions of the gateway itself, and of modern clients. */
const spareKeys = 50;

/** What is wrong with the keys that wait for their end: each session leaves one, so there are no more than sessions. */
export function tooManyExpiring(end: Sample, opened: number): readonly string[] {
  const expiring = expiringKeys(end);
  if (expiring <= keysPerOpened * opened + spareKeys) return [];
  return [`${expiring} keys of ended or left sessions wait in Redis for their end, of ${opened} that were opened`];
}

/** Resolves with a sentence for each instance that still has calls when all clients have left. */
export async function openCalls(sampler: ReturnType<typeof createSampler>): Promise<readonly string[]> {
  const until = performance.now() + noticedMs + loadMs;
  for (;;) {
    const { gateways } = await sampler.take();
    const open = gateways.flatMap((used, index) =>
      (used?.calls ?? 0) > 0 ? [`instance ${index} has ${used?.calls} calls of clients that have left`] : [],
    );
    if (open.length === 0 || performance.now() > until) return open;
    await delay(500);
  }
}

/** What is left at the end that was not there at first, a sentence each. */
export async function leftOver({ upstream }: Stage, base: Sample, end: Sample): Promise<readonly string[]> {
  const found = [...moreThan(base, end)];
  const children = await upstream.descendants();
  if (children.length > 0) found.push(`the remote server has ${children.length} children left`);
  for (const [kind, count] of end.redis?.keys ?? []) {
    const before = mayBe(base, kind);
    if (count > before && kind !== deadMarks && !isLasting(kind) && /^(session|instance)/.test(kind))
      found.push(`${count} keys ${kind} are left in Redis, ${before} at first`);
  }
  for (const [kind, count] of end.redis?.withoutTtl ?? []) found.push(`${count} keys ${kind} have no TTL`);
  return found;
}
