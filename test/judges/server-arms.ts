import {
  type Answers,
  byModernClient,
  bySse,
  byStreamableHttp,
  directly,
  inBothEras,
  type Way,
} from './asking-servers.ts';
import { type Arm, type Outcome, only, testJudge } from './judge.ts';
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

/** A way, as a column of the published table. */
export interface ComparedWay {
  readonly name: string;
  readonly way: Way;
  /** The part of a text that must be the same as directly; by default, all of it. */
  readonly compared?: (text: string) => string;
}

/** A judge that compares the answers of each way with those of the direct one. */
export function compare(
  judge: string,
  all: readonly PublishedServer[],
  direct: Way,
  ways: readonly ComparedWay[],
): void {
  const servers = all.filter(({ name }) => only?.includes(name) ?? true);
  if (servers.length === 0) return;
  let expected: ReadonlyMap<string, Answers> = new Map();
  const directArm: Arm = {
    name: 'direct',
    async run() {
      expected = await answersOfAll(servers, direct);
      return new Map([...expected].map(([name, { size }]) => [name, size > 0 ? { passed: size, failed: [] } : silent]));
    },
  };
  testJudge(judge, directArm, ways.map(armOf));

  /** An arm passes a step if the answer is the same as directly. */
  function armOf({ name, way, compared = (text) => text }: ComparedWay): Arm {
    const outcomeOf = (server: string, answers: Answers): Outcome => {
      if (answers.size === 0) return silent;
      const directly = expected.get(server) ?? new Map();
      const differing = [...answers].filter(([step, text]) => {
        const [own, other] = [compared(text), compared(directly.get(step) ?? '{}')];
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
        const answered = await answersOfAll(asked, way);
        return new Map([...answered].map(([server, answers]) => [server, outcomeOf(server, answers)]));
      },
    };
  }
}

/** True for the step that a client of 2026-07-28 does not have. */
const isOfOneEra = (step: string): boolean => step === 'initialize';

/** The outcome of a server that cannot be asked. It says so in each table, and the others are judged. */
const silent: Outcome = { passed: 0, failed: ['starts'] };

async function answersOfAll(servers: readonly PublishedServer[], way: Way): Promise<Map<string, Answers>> {
  const all = new Map<string, Answers>();
  for (const server of servers) {
    const answers = await way(server).catch((error): Answers => {
      process.stderr.write(`${server.name} does not answer: ${error}\n`);
      return new Map();
    });
    all.set(server.name, answers);
  }
  return all;
}

/** The first place where two texts differ, with what surrounds it. */
function whereDiffer(direct: string, through: string): string {
  let at = 0;
  while (at < direct.length && direct[at] === through[at]) at += 1;
  const [one, other] = [direct, through].map((text) => text.slice(Math.max(0, at - 60), at + 200));
  return `at ${at}, directly …${one}…, through the gateway …${other}…`;
}
