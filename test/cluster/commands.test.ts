import { Agent } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type CountingSession, openCounting, toldTexts, withCounting } from '../resume/counting.ts';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { stopSound, urlOf } from './fast.ts';

/** So long that no renewal of a lease falls into a measurement, or at most one. */
const longLease = ['--cluster.lease', '10m'] as const;

let cluster: Cluster;
let own: CountingSession;
let other: CountingSession;
const agent = new Agent({ keepAlive: true });
beforeAll(async () => {
  const { command = [] } = withCounting();
  const args = [...longLease, '--timeouts.drain', '0', '--sse.streamAfter', '5s'];
  cluster = await startCluster({ instances: 2, command, args });
  own = await openCounting(urlOf(cluster, 0), { agent });
  other = own.at(urlOf(cluster, 1));
  await other.lines(); // from now on the other instance knows where the session is
});
afterAll(async () => {
  agent.destroy();
  await stopSound(cluster);
});

/** What Redis had to do. `commands` counts those inside of scripts too; `sent` is what a network carries for it. */
interface Cost {
  readonly commands: number;
  readonly byName: ReadonlyMap<string, number>;
  readonly receivedBytes: number;
  readonly sentBytes: number;
}

async function readCost(): Promise<Cost> {
  const stats = await cluster.redis.cli('INFO', 'stats');
  const { total, calls } = await cluster.redis.commandCount();
  const statOf = (name: string): number => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(stats)?.[1]);
  return {
    commands: total,
    byName: calls,
    receivedBytes: statOf('total_net_input_bytes'),
    sentBytes: statOf('total_net_output_bytes'),
  };
}

/** What each of `times` pieces of work costs, without what looking at it costs. */
async function costOf(times: number, work: () => Promise<unknown>): Promise<Cost> {
  const idle = await readCost();
  const before = await readCost();
  await work();
  const after = await readCost();
  const each = (of: (cost: Cost) => number): number => (of(after) - of(before) - (of(before) - of(idle))) / times;
  const names = [...after.byName.keys()].map((name) => [name, each(({ byName }) => byName.get(name) ?? 0)] as const);
  return {
    commands: each(({ commands }) => commands),
    byName: new Map(names.filter(([, count]) => count > 0.01)),
    receivedBytes: each(({ receivedBytes }) => receivedBytes),
    sentBytes: each(({ sentBytes }) => sentBytes),
  };
}

function report(what: string, { commands, byName, receivedBytes, sentBytes }: Cost): void {
  const round = (value: number): number => Math.round(value * 10) / 10;
  const names = [...byName].map(([name, count]) => `${name} ${round(count)}`).join(', ');
  const bytes = `${Math.round(receivedBytes)} bytes to Redis, ${Math.round(sentBytes)} from it`;
  process.stdout.write(`Redis per ${what}: ${round(commands)} commands (${names || 'none'}), ${bytes}\n`);
}

/** A measurement that is not as it should be is made once more: a renewal, or other processes, may have been in it. */
async function measure<T>(once: () => Promise<T>, isFine: (result: T) => boolean): Promise<T> {
  const result = await once();
  return isFine(result) ? result : once();
}

const times = 200;
const callsAt = (session: CountingSession) => async (): Promise<void> => {
  for (let n = 0; n < times; n++) await session.request('test/lines');
};
/** Events that each come alone, said to a listener of this instance. */
const eventsAt = (session: CountingSession) => async (): Promise<void> => {
  const listening = session.listen();
  await listening.opened;
  await own.tell(1, times, { burst: 1, gapMs: 2 });
  const [last] = toldTexts(times, 0, times);
  await listening.events.next(({ data }) => data === last, { deadlineMs: 30_000 });
  listening.drop();
  await listening.ended;
};

/** What two idle instances send meanwhile, for each of the calls. */
const upkeep = 0.1;

describe('what Redis has to do', () => {
  test('for a JSON answer at the owner: nothing', async () => {
    const cost = await measure(
      () => costOf(times, callsAt(own)),
      ({ commands }) => commands === 0,
    );
    report('JSON call at its owner', cost);
    expect(cost.commands).toBe(0);
  });

  test('for a JSON answer by way of another instance: nothing either, since instances speak HTTP', async () => {
    const cost = await measure(
      () => costOf(times, callsAt(other)),
      ({ commands }) => commands < upkeep,
    );
    report('JSON call by way of another instance', cost);
    expect(cost.commands).toBeLessThan(upkeep);
  });

  test('for an event at the owner: one append', async () => {
    const cost = await costOf(times, eventsAt(own));
    report('event at its owner', cost);
    expect(cost.byName.get('evalsha')).toBeLessThan(1.2);
  });

  test('for an event by way of another instance: one append, too', async () => {
    const cost = await costOf(times, eventsAt(other));
    report('event by way of another instance', cost);
    expect(cost.byName.get('evalsha')).toBeLessThan(1.2);
  });
});

test('a call by way of another instance takes at most 2.5 times as long as one at its owner', async () => {
  const once = async () => {
    const [here, there]: [number[], number[]] = [[], []];
    for (let n = 0; n < 300; n++) {
      for (const [session, durations] of [
        [own, here],
        [other, there],
      ] as const) {
        const startedAt = performance.now();
        await session.request('test/lines');
        durations.push(performance.now() - startedAt);
      }
    }
    const [p50Ms, otherP50Ms] = [here, there].map((all) => all.sort((a, b) => a - b)[150] ?? 0) as [number, number];
    return { p50Ms, otherP50Ms };
  };
  const isFine = ({ p50Ms, otherP50Ms }: Awaited<ReturnType<typeof once>>): boolean => otherP50Ms <= 2.5 * p50Ms;
  const seen = await measure(once, isFine);
  process.stdout.write(`p50 of a call: ${seen.p50Ms.toFixed(2)} ms, elsewhere ${seen.otherP50Ms.toFixed(2)} ms\n`);
  expect(isFine(seen), JSON.stringify(seen)).toBe(true);
});
