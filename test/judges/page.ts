// Writes docs/conformance.md from the records of a run: the global setup of the judges.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { TestProject } from 'vitest/node';
import type { JudgeRecord } from './judge.ts';
import { allKnownDifferences } from './known-differences.ts';
import { pythonServers } from './published-servers.ts';
import { sdkVersions } from './sdks/sdks.ts';

const page = fileURLToPath(new URL('../../docs/conformance.md', import.meta.url));
const begin = '<!-- results: written by `npm run judges` -->\n';
const end = '<!-- end of results -->';

let records = '';

/** A file that keeps the records of several runs, each of a part of the judges. */
const kept = process.env['JUDGES_RECORDS'];

/** Makes the file that gets a line for each outcome. */
export function setup(project: TestProject): void {
  records = kept ?? join(mkdtempSync(join(tmpdir(), 'gangway-judges-')), 'records.jsonl');
  project.provide('records', records);
}

/** Puts the tables of the judges that ran into the page, each in place of its earlier one. */
export function teardown(): void {
  const lines = existsSync(records) ? readFileSync(records, 'utf8').trimEnd().split('\n') : [];
  const found: readonly JudgeRecord[] = lines.map((line) => JSON.parse(line));
  writeFileSync(page, withTables(readFileSync(page, 'utf8'), found, thisRun()));
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
 * The page with new tables for the judges in the records.
 * @param when date, commit and version of Node.js of the run
 */
export function withTables(whole: string, records: readonly JudgeRecord[], when: string): string {
  const [from, to] = [whole.indexOf(begin) + begin.length, whole.indexOf(end)];
  if (from < begin.length || to < from) throw new Error('docs/conformance.md lacks its markers');
  const sections = new Map<string, string>();
  for (const section of whole.slice(from, to).split(/^(?=## )/m)) {
    const title = /^## (.*)/.exec(section)?.[1];
    if (title !== undefined) sections.set(title, section.trim());
  }
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
  const text = [versionsText(), ...sorted.map(([, section]) => section)].join('\n\n');
  return `${whole.slice(0, from)}\n${text}\n\n${whole.slice(to)}`;
}

/** The judges and the peers, in the versions that their lock files pin. */
function versionsText(): string {
  const rows = ['test/conformance', 'test/judges/clients', 'test/judges/servers', 'bench/peers'].flatMap((folder) => {
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
  const known = allKnownDifferences.filter((difference) => difference.judge === judge);
  const reasons = [...new Set(known.map(({ reason }) => reason))];
  const placesOf = (reason: string): string[] =>
    known.filter((other) => other.reason === reason).map(({ arm, difference }) => `- ${arm}: \`${difference}\``);
  return [
    `## ${judge}`,
    '',
    `Run on ${when}.`,
    '',
    `| Scenario | ${arms.join(' | ')} |`,
    `|:--|${'--:|'.repeat(arms.length)}`,
    `| all checks | ${totals.join(' | ')} |`,
    ...scenarios.map((scenario) => `| ${scenario} | ${arms.map((arm) => cell(scenario, arm)).join(' | ')} |`),
    ...reasons.flatMap((reason) => ['', `**Known differences.** ${reason}`, '', ...placesOf(reason)]),
  ].join('\n');
}
