import { type Cluster, startCluster } from '../support/cluster.ts';
import { type CallOutcome, outcomesOf, type Violation, violationsOf } from '../support/log-checker.ts';
import type { RedisServer } from '../support/redis-server.ts';
import { isResponse, type Listened, type Listening } from '../support/resuming-client.ts';
import { readLogs } from '../support/session-logs.ts';
import { waitFor } from '../support/wait-for.ts';
import { answerOn, createNotes, type HeldClient, openHeld } from './held.ts';
import { faultArgs, healthOf, leaseMs, mayTakeOver, untilPassed, urlOf } from './patience.ts';

export const faults = ['kill -9', 'freeze', 'partition', 'SIGTERM'] as const;
export type Fault = (typeof faults)[number];

/** Who is struck, by where the session's owner and its client's instance (its ingress) are. The survivor is 1. */
export const places = {
  'ingress = owner': { owner: 0, ingress: 0 },
  'the owner of another ingress': { owner: 0, ingress: 1 },
  'the ingress of another owner': { owner: 1, ingress: 0 },
  'both, owner and ingress': { owner: 2, ingress: 3 },
} as const;
export type Place = keyof typeof places;
const victims = [0, 2, 3] as const;
const survivor = 1;

/** When it happens: before the answer has begun, amid its stream, amid its stream with the client gone. */
export const phases = ['JSON', 'stream', 'client away'] as const;
export type Phase = (typeof phases)[number];

/** A tool, which must not run twice, and a read, which may. */
export const methods = ['tools/call', 'resources/read'] as const;
export type Method = (typeof methods)[number];

/** What became of one cell. */
export interface Cell {
  readonly outcome: CallOutcome;
  /** How often the server ran it. */
  readonly runs: number;
  /** From the fault, or for a client whose instance was silent from its end, to the answer. */
  readonly answeredAfterMs: number;
  /** The answer came on the connection that was open when it happened. */
  readonly isSameConnection: boolean;
  /** What a ping got afterwards at the survivor. */
  readonly pinged: number;
}

export interface MatrixRun {
  cell(place: Place, phase: Phase, method: Method): Cell;
  readonly violations: readonly Violation[];
}

interface Case {
  readonly place: Place;
  readonly phase: Phase;
  readonly method: Method;
  readonly client: HeldClient;
  first: Listening | undefined;
}

const nameOf = (place: Place, phase: Phase, method: Method): string =>
  `${Object.keys(places).indexOf(place)}${phases.indexOf(phase)}${methods.indexOf(method)}`;

const isStruck = (instance: number): boolean => (victims as readonly number[]).includes(instance);

/** Who is struck in a cell. */
export const struckAt = (place: Place) => ({
  isOwnerStruck: isStruck(places[place].owner),
  isIngressStruck: isStruck(places[place].ingress),
});

/** Brings all cells of one fault about, in one cluster of four instances and at the same time. */
export async function runMatrix(fault: Fault, redis: RedisServer): Promise<MatrixRun> {
  const notes = await createNotes();
  const cluster = await startCluster({
    redis,
    instances: 4,
    command: notes.command,
    isPartitionable: true,
    // A call in its JSON phase stays there until its answer comes.
    args: [...faultArgs, '--timeouts.drain', '10s', '--sse.streamAfter', '10m'],
  });
  try {
    await mayTakeOver(cluster);
    const cases = await Promise.all(
      (Object.keys(places) as Place[]).flatMap((place) =>
        phases.flatMap((phase) => methods.map((method) => openCase(cluster, notes, place, phase, method))),
      ),
    );
    const cells = await strike(fault, cluster, cases, notes.executions);
    const transcripts = cases.map(({ client }) => client.transcript);
    const executions = await notes.executions();
    const violations = violationsOf({ transcripts, logs: await readLogs(redis), executions });
    return {
      violations,
      cell(place, phase, method) {
        const cell = cells.get(nameOf(place, phase, method));
        if (cell === undefined) throw new Error('There is no such cell');
        return cell;
      },
    };
  } finally {
    await cluster.stop();
    await notes.remove();
  }
}

async function openCase(
  cluster: Cluster,
  notes: Parameters<typeof openHeld>[2],
  place: Place,
  phase: Phase,
  method: Method,
): Promise<Case> {
  const { owner, ingress } = places[place];
  const client = await openHeld(urlOf(cluster, owner), nameOf(place, phase, method), notes);
  const first = await client.call(urlOf(cluster, ingress), { method, reports: phase === 'JSON' ? 0 : 2 });
  if (phase !== 'client away') return { place, phase, method, client, first };
  first.drop();
  await first.ended;
  return { place, phase, method, client, first: undefined };
}

/** Lets the fault happen and takes all clients to their ends. */
async function strike(
  fault: Fault,
  cluster: Cluster,
  cases: readonly Case[],
  executions: () => Promise<readonly string[]>,
): Promise<ReadonlyMap<string, Cell>> {
  const at = urlOf(cluster, survivor);
  const isSilent = fault === 'freeze' || fault === 'partition';
  const begin = performance.now();
  const ends = Promise.all(victims.map((victim) => begins(fault, cluster, victim)));
  if (fault === 'SIGTERM') await Promise.all(victims.map((victim) => isDraining(cluster, victim)));
  else await ends;

  // What nobody asks for is not taken over: that the session goes on is asked for by its client.
  const pings = cases.map(({ client }) => client.ping(at));
  let woken = Number.NaN;
  let wake: () => void = () => undefined;
  const awake = new Promise<void>((resolve) => {
    wake = resolve;
  });
  const answers = cases.map(async ({ place, phase, client, first }) => {
    const { owner, ingress } = places[place];
    // Where the owner lives, or is about to end in order, the server is still there.
    const isServed = fault === 'SIGTERM' || !isStruck(owner);
    if (isServed && !(isSilent && phase === 'JSON')) await client.release(at);
    const isHeard = first !== undefined && (!isStruck(ingress) || fault === 'SIGTERM');
    let atMs = isHeard ? await answerOn(first) : Number.NaN;
    let from = begin;
    const isAnswered = (): boolean =>
      outcomesOf(client.transcript).get(`${client.transcript.name}-call`)?.outcome !== 'none';
    if (client.lastEventId !== undefined && !isAnswered()) {
      const next = client.resume(at);
      atMs = await answerOn(next);
      await next.ended;
    } else if (!isHeard && first !== undefined) {
      if (isSilent) {
        await awake;
        from = woken;
      }
      // Behind what the instance asks the owner again, once it is awake.
      // An owner without its store still answers other instances during its lease, so nobody may have taken it over.
      const mayBeServed = !isStruck(owner) || (fault === 'partition' && owner === ingress);
      if (isSilent && mayBeServed) void client.ping(urlOf(cluster, ingress)).then(() => client.release(at));
      atMs = await answerOn(first);
      await first.ended;
    }
    return atMs - from;
  });
  const settled = cases.map((one, index) => ({ one, answered: answers[index] as Promise<number> }));
  const isWaitingForWake = ({ place, phase }: Case): boolean =>
    isSilent && phase === 'JSON' && isStruck(places[place].ingress);
  await Promise.all(settled.filter(({ one }) => !isWaitingForWake(one)).map(({ answered }) => answered));
  if (isSilent) {
    await Promise.all(pings);
    await untilPassed(begin, 2 * leaseMs);
    woken = performance.now();
    for (const victim of victims) {
      if (fault === 'freeze') cluster.thaw(victim);
      else await cluster.heal(victim);
    }
    wake();
  }
  const waited = await Promise.all(answers);
  // Old connections to instances that woke up must come to an end by themselves, with nothing wrong on them.
  await Promise.all(cases.map(({ first }) => first?.ended));
  for (const { client } of cases) client.end();
  const again = await Promise.all(cases.map(({ client }) => client.ping(at)));
  const runs = await executions();
  await ends;
  const before = await Promise.all(pings);
  return new Map(
    cases.map(({ client, first }, index) => {
      const { name } = client.transcript;
      const outcome = outcomesOf(client.transcript).get(`${name}-call`) as CallOutcome;
      const pinged = Math.max(before[index] as number, again[index] as number);
      const isSameConnection = first !== undefined && hasAnswer(first.listened);
      const cell: Cell = {
        outcome,
        runs: runs.filter((mark) => mark === client.mark).length,
        answeredAfterMs: waited[index] as number,
        isSameConnection,
        pinged,
      };
      return [name, cell];
    }),
  );
}

const hasAnswer = ({ events, text, isWhole }: Listened): boolean =>
  events.some(isResponse) || (isWhole && text.startsWith('{'));

async function begins(fault: Fault, cluster: Cluster, victim: number): Promise<void> {
  if (fault === 'kill -9') await cluster.kill(victim);
  else if (fault === 'SIGTERM') await cluster.kill(victim, 'SIGTERM');
  else if (fault === 'freeze') await cluster.freeze(victim);
  else await cluster.partition(victim);
}

async function isDraining({ instances }: Cluster, victim: number): Promise<void> {
  const isOver = async () => (await healthOf(instances[victim]?.baseUrl ?? '', '/readyz')).status !== 200;
  await waitFor(isOver, { what: 'the drain to begin' });
}
