// Writes results.md, and its summary in docs/conformance.md, from the records of a run: the global setup of the judges.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { TestProject } from 'vitest/node';
import type { JudgeRecord } from './judge.ts';
import { allKnownDifferences, differenceClasses, type Reason } from './known-differences.ts';
import { pythonServers } from './published-servers.ts';
import { sdkVersions } from './sdks/sdks.ts';

const page = fileURLToPath(new URL('../../docs/conformance.md', import.meta.url));
const resultsFile = fileURLToPath(new URL('./results.md', import.meta.url));
const begin = '<!-- results: written by `node test/run.mjs judges` -->\n';
const end = '<!-- end of results -->';

let records = '';

/** A file that keeps the records of several runs, each of a part of the judges. */
const kept = process.env['JUDGES_RECORDS'];

/** Makes the file that gets a line for each outcome. */
export function setup(project: TestProject): void {
  records = kept ?? join(mkdtempSync(join(tmpdir(), 'gangway-judges-')), 'records.jsonl');
  project.provide('records', records);
}

/** Puts the tables of the judges that ran into the results, each in place of its earlier one, and sums them up. */
export function teardown(): void {
  const lines = existsSync(records) ? readFileSync(records, 'utf8').trimEnd().split('\n') : [];
  const found: readonly JudgeRecord[] = lines.map((line) => JSON.parse(line));
  const results = withTables(readFileSync(resultsFile, 'utf8'), found, thisRun());
  writeFileSync(resultsFile, results);
  writeFileSync(page, withSummary(readFileSync(page, 'utf8'), results));
  if (kept === undefined) rmSync(join(records, '..'), { recursive: true, force: true });
}

/** Date, commit and version of Node.js, for the tables that this run writes. */
function thisRun(): string {
  const commit = execFileSync('git', ['rev-parse', '--short=8', 'HEAD'], {
    cwd: import.meta.dirname,
    encoding: 'utf8',
  });
  return `${new Date().toISOString().slice(0, 10)} with Node.js ${process.versions.node}, commit \`${commit.trim()}\``;
}

/**
 * The results with new tables for the judges in the records.
 * @param when date, commit and version of Node.js of the run
 */
export function withTables(results: string, records: readonly JudgeRecord[], when: string): string {
  const sections = new Map<string, string>();
  for (const section of sectionsOf(results)) sections.set(section.title, section.text);
  for (const judge of new Set(records.map((record) => record.judge))) {
    sections.set(
      judge,
      sectionOf(
        judge,
        records.filter((record) => record.judge === judge),
        when,
      ),
    );
  }
  const sorted = [...sections].sort(([a], [b]) => a.localeCompare(b, 'en'));
  const explained = sorted.map(([judge, section]) => withReasons(judge, section));
  return `${[resultsHead, versionsText(), ...explained].join('\n\n')}\n`;
}

const resultsHead = `# Results of the judges

\`node test/run.mjs judges\` writes this file. [Conformance](../../docs/conformance.md) explains the judges, and sums up the results.`;

const sectionsOf = (results: string): { readonly title: string; readonly text: string }[] =>
  results.split(/^(?=## )/m).flatMap((text) => {
    const title = /^## (.*)/.exec(text)?.[1];
    return title === undefined ? [] : [{ title, text: text.trim() }];
  });

/** The page with a line for each judge, and the reasons of all known differences. */
export function withSummary(whole: string, results: string): string {
  const [from, to] = [whole.indexOf(begin) + begin.length, whole.indexOf(end)];
  if (from < begin.length || to < from) throw new Error('docs/conformance.md lacks its markers');
  const rows = sectionsOf(results).map(({ title, text }) => summaryOf(title, text));
  const reasons = [...new Set(allKnownDifferences.map(({ reason }) => reason))].map((reason) => {
    const known = allKnownDifferences.filter((each) => each.reason === reason);
    const judges = [...new Set(known.map(({ judge }) => judge))].join('; ');
    return `- ${differenceClasses[reason.class]}: ${reason.text} (${judges}: ${known.length} ${known.length === 1 ? 'check' : 'checks'})`;
  });
  const table = ['| Judge | Directly | Through the gateway | Other gateways |', '|:--|:--|:--|:--|', ...rows];
  const text = [table.join('\n'), '## Known differences', reasons.join('\n')].join('\n\n');
  return `${whole.slice(0, from)}\n${text}\n\n${whole.slice(to)}`;
}

const otherGateways = ['supergateway', 'mcp-proxy'];

/** The totals of a judge in one line, by whose outcomes they are. */
function summaryOf(title: string, section: string): string {
  const cellsOf = (line: RegExp): string[] => (line.exec(section)?.[1] ?? '').split(' | ').map((cell) => cell.trim());
  const totals = cellsOf(/^\| all checks \| (.*) \|$/m);
  const arms = cellsOf(/^\| Scenario \| (.*) \|$/m).map((name, index) => ({ name, total: totals[index] ?? '' }));
  const isDirect = ({ name }: { readonly name: string }): boolean => /\bdirect(?:ly)?$/.test(name);
  const isOther = ({ name }: { readonly name: string }): boolean => otherGateways.includes(name);
  const cell = (of: typeof arms): string => {
    const different = new Set(of.map(({ total }) => total));
    if (different.size < 2) return of[0]?.total ?? '–';
    return of.map(({ name, total }) => `${name}: ${total}`).join('; ');
  };
  const groups = [
    arms.filter(isDirect),
    arms.filter((arm) => !isDirect(arm) && !isOther(arm)),
    arms.filter(isOther),
  ].map(cell);
  return `| ${[title, ...groups].join(' | ')} |`;
}

/** The judges and the peers, in the versions that their lock files pin. */
function versionsText(): string {
  const rows = ['test/conformance', 'test/judges/clients', 'test/judges/servers', 'bench'].flatMap((folder) => {
    const manifest: { dependencies: Readonly<Record<string, string>> } = JSON.parse(
      readFileSync(fileURLToPath(new URL(`../../${folder}/package.json`, import.meta.url)), 'utf8'),
    );
    return Object.entries(manifest.dependencies);
  });
  const python = pythonServers.map(({ name, version }) => [`PyPI ${name}`, version] as const);
  const lines = [...rows, ...Object.entries(sdkVersions), ...python].map(
    ([name, version]) => `| ${name} | ${version} |`,
  );
  return ['| Judge or other gateway | Version |', '|:--|:--|', ...lines].join('\n');
}

function sectionOf(judge: string, records: readonly JudgeRecord[], when: string): string {
  // What a later run found replaces what an earlier one found.
  const latest = [...new Map(records.map((record) => [`${record.arm}\n${record.scenario}`, record])).values()];
  const arms = [...new Set(latest.map(({ arm }) => arm))];
  const scenarios = [...new Set(latest.map(({ scenario }) => scenario))].sort();
  const cell = (scenario: string, arm: string): string => {
    const record = latest.find((candidate) => candidate.scenario === scenario && candidate.arm === arm);
    if (record === undefined) return '–';
    const text = record.cell ?? `${record.passed}`;
    return record.failed.length === 0 ? text : `${text}, **${record.failed.length} failed**`;
  };
  const totals = arms.map((arm) => {
    const own = latest.filter((record) => record.arm === arm);
    const passed = own.reduce((sum, record) => sum + record.passed, 0);
    const failed = own.reduce((sum, record) => sum + record.failed.length, 0);
    return `${passed}, ${failed} failed`;
  });
  return [
    `## ${judge}`,
    '',
    `Run on ${when}.`,
    '',
    `| Scenario | ${arms.join(' | ')} |`,
    `|:--|${'--:|'.repeat(arms.length)}`,
    `| all checks | ${totals.join(' | ')} |`,
    ...scenarios.map((scenario) => `| ${scenario} | ${arms.map((arm) => cell(scenario, arm)).join(' | ')} |`),
  ].join('\n');
}

/** The table of a judge with the reasons as they are known now, also below one of an earlier run. */
function withReasons(judge: string, section: string): string {
  const known = allKnownDifferences.filter((difference) => difference.judge === judge);
  const placesOf = (reason: Reason): string[] =>
    known.filter((other) => other.reason === reason).map(({ arm, difference }) => `- ${arm}: \`${difference}\``);
  const [table = ''] = section.split('\n\n**Known differences');
  return [
    table,
    ...[...new Set(known.map(({ reason }) => reason))].flatMap((reason) => [
      `**Known differences, ${reason.class}.** ${reason.text}`,
      placesOf(reason).join('\n'),
    ]),
  ].join('\n\n');
}
