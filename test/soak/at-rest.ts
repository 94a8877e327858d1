import { setTimeout as delay } from 'node:timers/promises';
import { type createSampler, deadMarks, type Sample } from './samples.ts';
import { idleMs, keptMs, loadMs, noticedMs, type Stage } from './stage.ts';

/** Connections that nobody uses stay open for a while, on both sides. */
const lingerMs = 10_000;
/** Descriptors that a gateway may have more than at first: a connection that was just opened again, to Redis for example. */
const spareDescriptors = 3;

/** What lives for an hour after the session that nobody ended (docs/decisions/0192); that it has a TTL is checked. */
const lasting: ReadonlySet<string> = new Set(['session:record', 'session:tails', 'session:pending']);

const ofSessions = ({ redis }: Sample): number =>
  [...(redis?.keys ?? [])]
    .filter(([kind]) => kind.startsWith('session') && !lasting.has(kind))
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
  const children = await upstream.descendants();
  if (children.length > 0) found.push(`the remote server has ${children.length} children left`);
  for (const [kind, count] of end.redis?.keys ?? []) {
    const before = mayBe(base, kind);
    if (count > before && kind !== deadMarks && !lasting.has(kind) && /^(session|instance)/.test(kind))
      found.push(`${count} keys ${kind} are left in Redis, ${before} at first`);
  }
  for (const [kind, count] of end.redis?.withoutTtl ?? []) found.push(`${count} keys ${kind} have no TTL`);
  return found;
}
