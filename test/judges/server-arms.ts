import {
  type Answers,
  byModernClient,
  bySse,
  byStreamableHttp,
  directly,
  inBothEras,
  type Way,
} from './asking-servers.ts';
import { type Arm, isAsked, type Outcome, testJudge } from './judge.ts';
import type { PublishedServer } from './published-servers.ts';
import { directlyBySdks, throughBySdks } from './sdk-asking-servers.ts';

/** Two judges of the same servers: one compares texts of responses, the other what the official SDKs return. */
export function judgeServers(judge: string, servers: readonly PublishedServer[]): void {
  compare(judge, servers, directly, [
    { name: 'Streamable HTTP', way: byStreamableHttp },
    { name: 'HTTP+SSE', way: bySse },
    { name: '2026-07-28', way: byModernClient, compared: inBothEras },
  ]);
  compare(`${judge}, by the official SDKs`, servers, directlyBySdks, [{ name: 'the gateway', way: throughBySdks }]);
}

/** A server or a client: a row of the published table. */
interface Row {
  readonly name: string;
}

/** A way, as a column of the published table. */
export interface ComparedWay<T extends Row> {
  readonly name: string;
  readonly way: Way<T>;
  /** The part of a text that must be the same as directly; by default, all of it. */
  readonly compared?: (text: string, row: string) => string;
}

/** A judge that compares the answers of each way with those of the direct one. */
export function compare<T extends Row>(
  judge: string,
  all: readonly T[],
  direct: Way<T>,
  ways: readonly ComparedWay<T>[],
  { atOnce = 1 }: { readonly atOnce?: number } = {},
): void {
  const servers = all.filter(({ name }) => isAsked(name));
  if (servers.length === 0) return;
  let expected: ReadonlyMap<string, Answers> = new Map();
  const directArm: Arm = {
    name: 'direct',
    async run() {
      expected = await answersOfAll(servers, direct, atOnce);
      return new Map([...expected].map(([name, { size }]) => [name, size > 0 ? { passed: size, failed: [] } : silent]));
    },
  };
  testJudge(judge, directArm, ways.map(armOf));

  /** An arm passes a step if the answer is the same as directly. */
  function armOf({ name, way, compared = (text) => text }: ComparedWay<T>): Arm {
    const outcomeOf = (server: string, answers: Answers): Outcome => {
      if (answers.size === 0) return silent;
      const directly = expected.get(server) ?? new Map();
      const differing = [...answers].filter(([step, text]) => {
        const [own, other] = [compared(text, server), compared(directly.get(step) ?? '{"result":{}}', server)];
        if (own !== other) process.stderr.write(`${server}, ${step}: ${whereDiffer(other, own)}\n`);
        return own !== other;
      });
      const missing = [...directly.keys()].filter((step) => !answers.has(step) && !isOfOneEra(step));
      const failed = [...differing.map(([step]) => step), ...missing];
      return { passed: answers.size - differing.length, failed };
    };
    return {
      name,
      async run(again) {
        const asked = servers.filter((server) => again?.has(server.name) ?? true);
        const answered = await answersOfAll(asked, way, atOnce);
        return new Map([...answered].map(([server, answers]) => [server, outcomeOf(server, answers)]));
      },
    };
  }
}

/** True for the step that a client of 2026-07-28 does not have. */
const isOfOneEra = (step: string): boolean => step === 'initialize';

/** The outcome of a server that cannot be asked. It says so in each table, and the others are judged. */
const silent: Outcome = { passed: 0, failed: ['starts'] };

async function answersOfAll<T extends Row>(
  rows: readonly T[],
  way: Way<T>,
  atOnce: number,
): Promise<Map<string, Answers>> {
  const all = new Map<string, Answers>(rows.map(({ name }) => [name, new Map()]));
  await severalAtOnce(rows, atOnce, async (row) => {
    const answers = await way(row).catch((error): Answers => {
      process.stderr.write(`${row.name} does not answer: ${error}\n`);
      return new Map();
    });
    all.set(row.name, answers);
  });
  return all;
}

/** Runs `act` for all of them, some at once: the limits of clients are short for a machine that is busy with all. */
export async function severalAtOnce<T>(
  all: readonly T[],
  atOnce: number,
  act: (one: T) => Promise<void>,
): Promise<void> {
  const left = all.values();
  const work = async (): Promise<void> => {
    for (const one of left) await act(one);
  };
  await Promise.all(Array.from({ length: atOnce }, work));
}

/** The first place where two texts differ, with what surrounds it. */
function whereDiffer(direct: string, through: string): string {
  let at = 0;
  while (at < direct.length && direct[at] === through[at]) at += 1;
  const [one, other] = [direct, through].map((text) => text.slice(Math.max(0, at - 60), at + 200));
  return `at ${at}, directly …${one}…, through the gateway …${other}…`;
}
