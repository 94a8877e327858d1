import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { onTestFinished } from 'vitest';
import { root } from '../support/gateway.ts';
import { findFreePort } from '../support/redis-process.ts';
import { waitFor } from '../support/wait-for.ts';

/** Debian and Ubuntu: apt-get install prometheus, which brings both programs. */
const run = promisify(execFile);

/** The folder of the alerts. */
export const folder = `${root}deploy/prometheus`;

/** Runs promtool with this input; resolves with what it says, rejects if it finds something wrong. */
export async function promtool(args: readonly string[], input = '', cwd: string = folder): Promise<string> {
  const running = run('promtool', args, { cwd });
  running.child.stdin?.end(input);
  const { stdout, stderr } = await running;
  return stdout + stderr;
}

/** A sample, or an alert, as Prometheus' API tells of it. */
export interface Found {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** A running Prometheus, which scrapes once a second. */
export interface Prometheus {
  /** The result of an expression now. */
  query(expression: string): Promise<readonly Found[]>;
  /** Resolves with the labels of an alert when it fires. */
  fires(name: string): Promise<Found['labels']>;
  /** The names of all alerts that fire now. */
  firing(): Promise<readonly string[]>;
}

/**
 * Starts Prometheus with the alerts of this project in front of gateways at these ports. What alerts wait for is cut to a second; their
 * expressions are as they are. Stopped with the test.
 */
export async function startPrometheus(adminPorts: readonly number[]): Promise<Prometheus> {
  const data = await mkdtemp(join(tmpdir(), 'gangway-prometheus-'));
  const port = await findFreePort();
  const rules = await readFile(`${folder}/alerts.yml`, 'utf8');
  await writeFile(join(data, 'alerts.yml'), rules.replace(/^( +for:) \d+[sm]$/gm, '$1 1s'));
  const targets = adminPorts.map((adminPort) => `"127.0.0.1:${adminPort}"`).join(', ');
  await writeFile(
    join(data, 'prometheus.yml'),
    `
global: { scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s }
rule_files: [alerts.yml]
scrape_configs:
  - job_name: mcp-gangway
    static_configs: [{ targets: [${targets}] }]
`,
  );
  const child = spawn(
    'prometheus',
    [
      ...[`--config.file=${data}/prometheus.yml`, `--storage.tsdb.path=${data}/tsdb`],
      ...[`--web.listen-address=127.0.0.1:${port}`, '--log.level=warn'],
    ],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  );
  const exited = once(child, 'exit');
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await exited;
    await rm(data, { recursive: true });
  });
  const ask = async (path: string): Promise<{ readonly [key: string]: never }> => {
    const response = await fetch(`http://127.0.0.1:${port}/api/v1/${path}`);
    const { status, data: told, error } = (await response.json()) as Record<string, never>;
    if (status !== 'success') throw new Error(`Prometheus: ${error}`);
    return told ?? {};
  };
  const query = async (expression: string): Promise<Found[]> => {
    const { result } = await ask(`query?query=${encodeURIComponent(expression)}`);
    return ((result ?? []) as { metric: Found['labels']; value: [number, string] }[]).map(({ metric, value }) => ({
      ...{ labels: metric, value: Number(value[1]) },
    }));
  };
  await waitFor(
    () =>
      fetch(`http://127.0.0.1:${port}/-/ready`).then(
        ({ ok }) => ok,
        () => false,
      ),
    {
      ...{ what: 'Prometheus to be ready', deadlineMs: 20_000 },
    },
  );
  // An alert on what has grown needs to have seen it before.
  const hasSeenAll = async () => (await query('count_over_time(up[1m]) > 1')).length === adminPorts.length;
  await waitFor(hasSeenAll, { what: 'Prometheus to have scraped every gateway twice', deadlineMs: 20_000 });
  const firing = (name: string) => query(`ALERTS{alertname=~"${name}", alertstate="firing"}`);
  return {
    query,
    fires: async (name) => {
      const [alert] = await waitFor(async () => ((found) => found.length > 0 && found)(await firing(name)), {
        ...{ what: `the alert ${name}`, deadlineMs: 45_000, intervalMs: 200 },
      });
      return alert?.labels ?? {};
    },
    firing: async () => [...new Set((await firing('.+')).map(({ labels }) => labels['alertname'] ?? ''))],
  };
}
