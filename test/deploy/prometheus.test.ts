import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { questions } from '../../scripts/docs/metric-questions.ts';
import { gatewayOptions } from '../../src/config/options/options.ts';
import { catalogue, type Metric } from '../../src/core/ops/metrics/catalogue.ts';
import { createExposition } from '../../src/features/metrics/exposition.ts';
import { Metrics } from '../../src/features/metrics/metrics.ts';
import { root } from '../support/gateway.ts';

/** That alerts and dashboard ask for what there is. `node test/run.mjs prometheus` asks Prometheus itself. */

const read = (path: string): string => readFileSync(`${root}deploy/${path}`, 'utf8');

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly action: string };
}

const [group] = parse(read('prometheus/alerts.yml')).groups as { readonly rules: readonly Rule[] }[];
const rules = group?.rules ?? [];

interface Panel {
  readonly title: string;
  readonly type: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly expr: string }[];
}

const dashboard: { readonly panels: readonly Panel[]; readonly templating: object } = JSON.parse(
  read('grafana/dashboard.json'),
);
const panels = dashboard.panels.filter(({ type }) => type !== 'row');

/** Every name that is scraped, and the labels of ours. */
const ofProcess = [...(await createExposition(new Metrics()).render()).matchAll(/^# TYPE (\S+)/gm)].map(
  ([, name]) => name,
);
const labelsOf = new Map<string, readonly string[]>();
for (const { name, type, labels } of Object.values<Metric>(catalogue)) {
  const names = labels.map((label) => label.name);
  if (type !== 'histogram') labelsOf.set(name, names);
  else for (const suffix of ['_bucket', '_sum', '_count']) labelsOf.set(name + suffix, [...names, 'le']);
}
const scraped = new Set([...labelsOf.keys(), ...ofProcess.filter((name) => !name?.startsWith('mcp_gangway_')), 'up']);

/** What Prometheus adds to everything. */
const ofTarget = ['job', 'instance'];

/** What is wrong with the names in an expression. */
function faultsOf(expression: string): string[] {
  const selectors = [...expression.matchAll(/\b((?:mcp_gangway|process|nodejs)_\w+|up)\b(?:\{([^}]*)\})?/g)];
  if (selectors.length === 0) return [`asks for nothing: ${expression}`];
  return selectors.flatMap(([, name = '', matchers = '']) => {
    if (!scraped.has(name)) return [`no such metric: ${name}`];
    const known = [...(labelsOf.get(name) ?? ['version', 'type', 'space', 'kind']), ...ofTarget];
    const asked = [...matchers.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)].map(([, label = '']) => label);
    return asked.filter((label) => !known.includes(label)).map((label) => `${name} has no label ${label}`);
  });
}

/** The same of labels that are summed by. */
const groupedBy = (expression: string): string[] =>
  [...expression.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, labels = '']) =>
    labels.split(',').map((label) => label.trim()),
  );

const allLabels = new Set([...[...labelsOf.values()].flat(), ...ofTarget]);

describe('alerts', () => {
  it.each(rules)('$alert asks for what there is, and says what to do', ({ expr, labels, annotations }) => {
    expect(faultsOf(expr)).toEqual([]);
    expect(groupedBy(expr).filter((label) => !allLabels.has(label))).toEqual([]);
    expect(['critical', 'warning', 'info']).toContain(labels.severity);
    expect(annotations.summary).toMatch(/\.$/);
    expect(annotations.action.length).toBeGreaterThan(20);
  });

  it('see the first of the refusals that they ask for', () => {
    const asked = rules.flatMap(({ expr }) => [...expr.matchAll(/refused_http_requests_total\{reason=~"([^"]*)"/g)]);
    const metrics = new Metrics();
    metrics.createSeries(['s']);
    const begun = metrics.samples('refused').map(({ labels }) => labels['reason']);
    expect(asked.flatMap(([, reasons = '']) => reasons.split('|')).sort()).toEqual(begun.sort());
    expect(begun.length).toBeGreaterThan(0);
  });

  it('each have a test of their expression, and one that brings it about at a gateway', () => {
    const names = rules.map(({ alert }) => alert).sort();
    const expressions = parse(read('prometheus/alerts.test.yml')).tests as {
      alert_rule_test: { alertname: string; exp_alerts: unknown[] }[];
    }[];
    const tested = expressions.flatMap(({ alert_rule_test: asked }) =>
      asked.filter(({ exp_alerts: fired }) => fired.length > 0),
    );
    expect(tested.map(({ alertname }) => alertname).sort()).toEqual(names);
    const provoked = readFileSync(`${root}test/prometheus/alerts.test.ts`, 'utf8');
    const isProvoked = (name: string): boolean => provoked.includes(`fires('${name}')`);
    expect(names.filter((name) => !isProvoked(name))).toEqual([]);
  });
});

describe('the questions of docs/reference/metrics.md', () => {
  it.each(questions)('$question asks for what there is', ({ queries }) => {
    expect(queries.length).toBeGreaterThan(0);
    expect(queries.flatMap(faultsOf)).toEqual([]);
    expect(queries.flatMap(groupedBy).filter((label) => !allLabels.has(label))).toEqual([]);
    for (const query of queries) expect(query).not.toMatch(/[|\n]/); // which would end a cell of the table
  });
});

describe('the dashboard', () => {
  it.each(panels)('$title asks for what there is', ({ targets = [] }) => {
    expect(targets.length).toBeGreaterThan(0);
    expect(targets.flatMap(({ expr }) => faultsOf(expr))).toEqual([]);
    expect(targets.flatMap(({ expr }) => groupedBy(expr)).filter((label) => !allLabels.has(label))).toEqual([]);
  });

  it('shows every metric of the gateway, but those that only others are made of', () => {
    const text = JSON.stringify(dashboard);
    const unseen = Object.values<Metric>(catalogue).filter(({ name }) => !text.includes(name));
    expect(unseen.map(({ name }) => name)).toEqual([
      ...['mcp_gangway_clients_cut_total', 'mcp_gangway_backend_starts_total', 'mcp_gangway_server_messages_total'],
      ...['mcp_gangway_events_appended_bytes_total', 'mcp_gangway_internal_errors_total'],
    ]);
  });

  it('has panels that do not lie on each other', () => {
    const cells = dashboard.panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, n) => `${x + (n % w)},${y + Math.floor(n / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    for (const { gridPos } of dashboard.panels) expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24);
  });
});

describe('the example with Prometheus and Grafana', () => {
  const example = (name: string) => readFileSync(`${root}examples/prometheus-and-grafana/${name}`, 'utf8');
  const { services } = parse(example('compose.yaml'));

  it('has Prometheus scrape the gateway where it listens', () => {
    const { scrape_configs: jobs } = parse(example('prometheus.yml'));
    const targets = [`gateway:${gatewayOptions.listen.adminPort.default}`];
    expect(jobs).toEqual([{ job_name: 'mcp-gangway', static_configs: [{ targets }] }]);
    expect(services.gateway.environment['GANGWAY_LISTEN_ADMIN_HOST']).toBe('0.0.0.0');
  });

  it('publishes its ports on this machine only, and not the port for operators', () => {
    for (const name of ['gateway', 'prometheus', 'grafana']) {
      expect(services[name].ports).toEqual([expect.stringMatching(/^127\.0\.0\.1:/)]);
      expect(services[name].ports).not.toEqual([expect.stringMatching(/9464/)]);
    }
  });

  it('shows the dashboard with the data of its Prometheus', () => {
    const [source] = parse(example('provisioning/datasources/prometheus.yml')).datasources;
    expect(source.url).toBe('http://prometheus:9090');
    const [provider] = parse(example('provisioning/dashboards/mcp-gangway.yml')).providers;
    expect(services.grafana.volumes).toContain(`../../deploy/grafana:${provider.options.path}:ro`);
    expect(services.grafana.environment['GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH']).toBe(
      `${provider.options.path}/dashboard.json`,
    );
  });
});
