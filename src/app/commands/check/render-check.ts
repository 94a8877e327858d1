import { isView } from '../../../config/servers/views.ts';
import { escapeControlCharacters } from '../../../core/backend/stdio/pipes/printable.ts';
import type { ServerUnusableError } from '../../probes/probe-session.ts';
import { version } from '../../version.ts';
import { type Advice, type CheckedConfiguration, notesOn } from './advice.ts';
import type { CheckedPolicy, CheckedRedis, CheckedServer, CheckListener } from './check-command.ts';
import { lists } from './examine-server.ts';

/** The maximum length of the names of one list. At least one name is shown, and the rest is counted. */
const maxShownLength = 160;

/** The beginning of a line that belongs to the line above. */
const indent = '      ';

/** The first word of a line, with its colour on a terminal (ECMA-48, SGR). */
const colors = { OK: 32, FAIL: 31, NOTE: 33 } as const;

/** Creates a listener that prints each result of a check at once, as text, and a summary as the last line. */
export function textListener(print: (text: string) => void, hasColors = false): CheckListener {
  const counts = { OK: 0, FAIL: 0, NOTE: 0 };
  const paint = (word: keyof typeof colors, text: string): string =>
    hasColors ? `\u001b[${colors[word]}m${text}\u001b[0m` : text;
  const printResult = (word: keyof typeof colors, text: string): void => {
    counts[word] += 1;
    print(text.replace(word, paint(word, word)));
  };
  return {
    onServer: (checked) => printResult(checked.isFine ? 'OK' : 'FAIL', linesOf(checked)),
    onRedis: (checked) => printResult(checked.isFine ? 'OK' : 'FAIL', redisLine(checked)),
    onPolicy: (checked) => printResult(checked.why === undefined ? 'OK' : 'FAIL', policyLine(checked)),
    onAdvice(advice) {
      for (const { about, text } of advice) printResult('NOTE', `NOTE  ${about}: ${safe(text)}\n`);
      const parts = [
        `Checked ${counts.OK + counts.FAIL}: ${counts.OK} OK`,
        ...(counts.FAIL > 0 ? [paint('FAIL', `${counts.FAIL} failed`)] : []),
        ...(counts.NOTE > 0 ? [paint('NOTE', `${counts.NOTE} ${counts.NOTE === 1 ? 'note' : 'notes'}`)] : []),
      ];
      print(`${parts.join(', ')}.\n`);
    },
  };
}

function linesOf(checked: CheckedServer): string {
  const { name } = checked.server;
  if (!checked.isFine) {
    return `FAIL  ${failureText(name, checked.failure)}`;
  }
  const { transport, findings } = checked;
  const { eras, revisions, startMs } = findings;
  const offered = lists.flatMap(([what]) => {
    const names = findings.lists[what];
    return names === undefined ? [] : [[what, names] as const];
  });
  const counts = offered.map(([what, { length }]) => `, ${length} ${length === 1 ? what.slice(0, -1) : what}`);
  const era = eras.length > 1 ? 'both eras, revisions' : `${eras.join()} era, revision`;
  const line = `OK    ${name}: ${safe(findings.name)}, ${transport}, ${era} ${revisions.join(' and ')}${counts.join('')}, started in ${startMs} ms\n`;
  const from = checked.package === undefined ? '' : `${indent}package: ${safe(checked.package)}\n`;
  return line + from + offered.map(([what, names]) => namesLine(what, names)).join('');
}

/** Why a server cannot be used, with its last output and the remedy. The text ends with a line break. */
export function failureText(server: string, { message, output, help }: ServerUnusableError): string {
  const lines = [...output.map((line) => `  | ${line}`), ...(help === '' ? [] : [help])];
  return `${server}: ${message}\n${lines.map((line) => `${indent}${line}\n`).join('')}`;
}

function namesLine(what: string, names: readonly string[]): string {
  let text = '';
  for (const [index, name] of names.entries()) {
    const longer = index === 0 ? safe(name) : `${text}, ${safe(name)}`;
    if (index > 0 && longer.length > maxShownLength)
      return `${indent}${what}: ${text}, and ${names.length - index} more\n`;
    text = longer;
  }
  return text === '' ? '' : `${indent}${what}: ${text}\n`;
}

const policyLine = ({ server, why }: CheckedPolicy): string =>
  why === undefined ? `OK    policy of ${server}: it decides\n` : `FAIL  policy of ${server}: ${why}\n`;

function redisLine(checked: CheckedRedis): string {
  if (!checked.isFine) return `FAIL  Redis: ${checked.why}\n`;
  const { version: its = 'of an unknown version', latencyMs, memoryPolicy, addresses } = checked.findings;
  const instances = addresses.length;
  const policy = memoryPolicy === undefined ? '' : `, maxmemory-policy ${memoryPolicy}`;
  const where = checked.link === 'local' ? 'only on this host' : checked.link;
  const link = `${indent}other instances reach this one: ${where}\n`;
  return `OK    Redis: ${safe(its)}, answers in ${latencyMs} ms${policy}, ${instances} ${instances === 1 ? 'instance' : 'instances'}\n${link}`;
}

/** Escapes text of a server, which could contain control sequences for the terminal. */
const safe = (text: string): string => escapeControlCharacters(Buffer.from(text));

/**
 * Creates a listener that collects the results of a check in one JSON object (docs/health.md). Unknown and missing
 * values are null.
 * @returns the listener, and a function that renders the text after the check
 */
export function jsonListener(): { readonly listener: CheckListener; text(isFine: boolean): string } {
  const servers: object[] = [];
  let redis: object | null = null;
  const policies: object[] = [];
  let advice: readonly Advice[] = [];
  return {
    listener: {
      onServer: (checked) => {
        servers.push(serverJson(checked));
      },
      onRedis(checked) {
        redis = redisJson(checked);
      },
      onPolicy({ server, why = null }) {
        policies.push({ server, ok: why === null, why });
      },
      onAdvice(all) {
        advice = all;
      },
    },
    text: (ok) => `${JSON.stringify({ version, ok, servers, redis, policies, advice }, null, 2)}\n`,
  };
}

function serverJson(checked: CheckedServer): object {
  const { name } = checked.server;
  if (!checked.isFine) {
    const { message: why, help, output } = checked.failure;
    return { name, ok: false, why, help: help === '' ? null : help, output };
  }
  const { transport, findings } = checked;
  const { eras, revisions, name: implementation, startMs, declares } = findings;
  const { tools = null, prompts = null, resources = null } = findings.lists;
  const details = { transport, eras, revisions, implementation, startMs, declares };
  const from = checked.package === undefined ? {} : { package: checked.package };
  return { name, ok: true, ...from, ...details, tools, prompts, resources };
}

function redisJson(checked: CheckedRedis): object {
  if (!checked.isFine) return { ok: false, why: checked.why };
  const { version: its = null, latencyMs, memoryPolicy = null, addresses } = checked.findings;
  return {
    ok: true,
    version: its,
    latencyMs,
    memoryPolicy,
    instances: addresses.length,
    link: checked.link,
    unreachable: checked.unreachable,
  };
}

/**
 * Renders the result of `check --config-only`: a valid configuration, with the warnings and the advice of `check`.
 * @param isJson true for the JSON object of `check --json`, in which no server and no Redis was checked
 */
export function renderConfigOnly(configuration: CheckedConfiguration, isJson: boolean): string {
  const advice = notesOn(configuration);
  if (isJson) {
    const { listener, text } = jsonListener();
    listener.onAdvice(advice);
    return text(true);
  }
  const notes = advice.map(({ about, text }) => `NOTE  ${about}: ${text}\n`);
  return `${notes.join('')}OK    The configuration is valid: ${countServers(configuration)}.\n`;
}

/** Counts what the file configures: `3 servers, 2 views, 1 disabled`. */
function countServers({ config: { servers }, disabled }: CheckedConfiguration): string {
  const views = servers.filter(isView).length;
  const counted = (count: number, one: string): string => `${count} ${count === 1 ? one : `${one}s`}`;
  return [
    counted(servers.length - views, 'server'),
    ...(views > 0 ? [counted(views, 'view')] : []),
    ...(disabled.length > 0 ? [`${disabled.length} disabled`] : []),
  ].join(', ');
}
