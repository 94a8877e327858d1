import { readFile, writeFile } from 'node:fs/promises';
import { afterAll, describe, expect, test } from 'vitest';
import { headOf, startBusy } from '../cluster/busy.ts';
import { root } from '../support/gateway.ts';
import { countOutcomes } from '../support/traffic.ts';
import { failures } from './failures.ts';

/** `REDIS_FAILURES_WRITE=1` writes the table into this page. */
const page = `${root}docs/redis-failures.md`;
const [tableBegin, tableEnd] = ['<!-- measured -->\n', '<!-- end -->\n'];

/** The errors that tell a client that its call did not run, or that its outcome or a part of its answer is lost. */
const told = ['outcome_unknown', 'store_unavailable', 'history_lost', 'unknown_session', 'server_unreachable'];

/** The outcome of one failure: the cells of its row. */
interface Row {
  readonly name: string;
  readonly answered: number;
  readonly told: number;
  readonly broken: number;
  readonly silent: number;
  readonly doubled: number;
  readonly toldGaps: number;
  readonly silentGaps: number;
  readonly sessionsLost: number;
  readonly note: string;
}

const rows: Row[] = [];

const columns = [
  ...['Failure', 'Calls answered', 'failed with an error', 'connection broke', 'silently lost', 'run twice'],
  ...['Reported gaps', 'Silent gaps', 'Sessions lost', 'Note'],
];

const formatTable = (): string => {
  const lines = rows.map((row) => Object.values(row));
  return [columns, columns.map(() => '---'), ...lines].map((cells) => `| ${cells.join(' | ')} |\n`).join('');
};

describe.sequential('a Redis that fails under load', () => {
  test.each(failures)('[P3] [P4] [P7] $name', async ({ name, start, isPromised }) => {
    const { redis, fail } = await start();
    const busy = await startBusy({ redis });
    await busy.more();
    const note = await fail();
    await busy.more().catch(() => undefined); // sessions that are lost have no more calls
    const transcripts = await busy.traffic.stop();
    const { answered = 0, broken = 0, none = 0, ...errors } = countOutcomes(transcripts);
    const unexpected = Object.keys(errors).filter((reason) => !told.includes(reason));
    expect(unexpected).toEqual([]);
    const violations = await busy.violations(transcripts);
    const count = (...kinds: string[]): number => violations.filter(({ kind }) => kinds.includes(kind)).length;
    const statuses = await Promise.all(transcripts.map(({ sessionId }) => headOf(busy.cluster.url, sessionId)));
    const gaps = transcripts.flatMap(({ connections }) => connections.flatMap(({ events }) => events));
    const row: Row = {
      name,
      answered,
      told: Object.values(errors).reduce((sum, each) => sum + each, 0),
      broken,
      silent: none + count('untrue_refusal'),
      doubled: count('run_twice', 'two_answers'),
      toldGaps: gaps.filter(({ data }) => data?.includes('history_lost')).length,
      silentGaps: count('gap', 'order', 'double', 'two_contents'),
      sessionsLost: statuses.filter(({ status }) => status === 404).length,
      note,
    };
    rows.push(row);
    process.stdout.write(
      `${JSON.stringify(row)} ${JSON.stringify(errors)} ${JSON.stringify(violations.slice(0, 5))}\n`,
    );
    expect(answered).toBeGreaterThan(0);
    if (isPromised) expect(row).toMatchObject({ silent: 0, doubled: 0, silentGaps: 0, sessionsLost: 0 });
  });
});

afterAll(async () => {
  process.stdout.write(formatTable());
  if (process.env['REDIS_FAILURES_WRITE'] === undefined || rows.length < failures.length) return;
  const text = await readFile(page, 'utf8');
  const [begin, end] = [text.indexOf(tableBegin) + tableBegin.length, text.indexOf(tableEnd)];
  await writeFile(page, `${text.slice(0, begin)}\n${formatTable()}\n${text.slice(end)}`);
});
