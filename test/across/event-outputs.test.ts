import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Logger, pino } from 'pino';
import { afterAll, expect, test } from 'vitest';
import { OfferedNames } from '../../src/core/backend/offered-names.ts';
import type { GatewayEvent } from '../../src/core/ops/gateway-events.ts';
import { createHealthSink } from '../../src/core/ops/health/health-sink.ts';
import { ServerHealth } from '../../src/core/ops/health/server-health.ts';
import { createConnectionLog } from '../../src/core/ops/log/connection-log.ts';
import { createServerLog } from '../../src/core/ops/log/server-log.ts';
import { SessionByProcess } from '../../src/core/ops/log/session-by-process.ts';
import { createSessionLifecycleLog } from '../../src/core/ops/log/session-lifecycle-log.ts';
import { createSharedServerLog } from '../../src/core/ops/log/shared-server-log.ts';
import { StdoutNoiseLog } from '../../src/core/ops/log/stdout-noise-log.ts';
import { catalogue, type MetricKey } from '../../src/core/ops/metrics/catalogue.ts';
import { RepeatedHelp } from '../../src/core/ops/repeated-help.ts';
import { createAudit } from '../../src/features/audit/audit.ts';
import { GatewayRecord } from '../../src/features/console/gateway-record.ts';
import { CallMetrics } from '../../src/features/metrics/collectors/call-metrics.ts';
import { countEvents } from '../../src/features/metrics/collectors/event-metrics.ts';
import { Metrics } from '../../src/features/metrics/metrics.ts';
import { numberedEvents } from '../core/ops/sample-events.ts';

const folder = mkdtempSync(join(tmpdir(), 'gangway-events-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Longer texts, such as help, are no part of these tables. */
const maxShown = 40;

/** A JSON text with its members in order, without stacks and the rest of long texts. */
const shorten = (line: string): string =>
  JSON.stringify(JSON.parse(line), (key, value: unknown) => {
    if (key === 'err' && typeof value === 'object' && value !== null && 'message' in value) return value.message;
    return typeof value === 'string' && key !== 'msg' && value.length > maxShown ? `${value.slice(0, 12)}…` : value;
  });

/** The lines of all logs, as an operator at `debug` gets them. */
function logLinesOf(event: GatewayEvent): string[] {
  const lines: string[] = [];
  const options = {
    base: null,
    timestamp: false,
    level: 'debug',
    formatters: { level: (level: string) => ({ level }) },
  };
  const root = pino(options, { write: (line) => void lines.push(shorten(line)) });
  const part = (name: string): Logger => root.child({ part: name });
  const processes = new SessionByProcess();
  const helps = new RepeatedHelp();
  const parts = { session: part('session'), store: part('store'), server: part('server'), stderr: part('stderr') };
  const connectionLog = createConnectionLog({ auth: part('auth'), http: part('http') });
  for (const sink of [
    createSessionLifecycleLog(parts, {
      processes,
      isAtTerminal: false,
      helps,
      storeName: 'Redis',
      explainOutage: () => ({ redis: 'r' }),
    }),
    createSharedServerLog(part('modern'), false, helps),
    createServerLog(parts, processes, helps),
    new StdoutNoiseLog({ logger: parts.server, isAtTerminal: false }).receive,
    connectionLog.receive,
  ])
    sink(event);
  connectionLog.close();
  return lines;
}

/** The numbers that are not zero. */
function metricsOf(event: GatewayEvent): string[] {
  const metrics = new Metrics();
  countEvents(metrics)(event);
  new CallMetrics(metrics).receive(event);
  const keys = Object.keys(catalogue).filter((key): key is MetricKey => key in catalogue);
  return keys
    .flatMap((key) => metrics.samples(key))
    .filter(({ name, value }) => value !== 0 && !name.endsWith('_bucket'))
    .map(
      ({ name, labels, value }) =>
        `${[name.replace('mcp_gangway_', ''), ...Object.values(labels)].join(' ')}: ${value}`,
    );
}

function healthOf(event: GatewayEvent): string[] {
  const health = new ServerHealth();
  health.add('s', { transport: 'stdio', isRequired: false, era: () => undefined });
  createHealthSink(health)(event);
  const { transport, era, last } = health.statuses[0] ?? {};
  const outcome = last?.state === 'failed' ? last.reason : last?.state;
  return [transport === 'stdio' ? undefined : transport, era, outcome].filter((word) => word !== undefined);
}

let audits = 0;

async function auditLinesOf(event: GatewayEvent): Promise<string[]> {
  const target = join(folder, `${++audits}`);
  const audit = createAudit({
    ...{ target, instance: 'i', logger: pino({ level: 'silent' }) },
    ...{ isChained: false, hiddenArguments: () => [], recordsArguments: () => true },
  });
  audit.receive(event);
  await audit.close();
  const lines = readFileSync(target, 'utf8').split('\n').slice(0, -1);
  return lines.map((line) => line.replace(/"time":"[^"]*",/, ''));
}

function consoleOf(event: GatewayEvent): string[] {
  const { record, receive } = new GatewayRecord({ inspects: false, names: new OfferedNames() });
  receive(event);
  record.fold();
  const { calls, failures } = record.rates.recent('s');
  return [
    ...record.events.after(0).map(({ kind, server = '', session = '', reason, detail = '' }) => {
      const why = [reason, detail.slice(0, maxShown)].filter(Boolean).join(': ');
      return [kind, server, session, why].join(' ');
    }),
    ...[record.failures.of({ server: 's', session: 'abcd1234' })]
      .filter((failed) => failed !== undefined)
      .map(({ last }) => `failed in its session: ${last}`),
    ...(calls > 0 ? [`calls ${calls}, errors ${failures}`] : []),
    ...record.stderr.of('s').map(({ pid, line }) => `stderr ${pid} ${line}`),
  ];
}

/** Events whose only effect is that a sink forgets something. */
const silent: ReadonlySet<string> = new Set(['server-removed 1']);

const outputsOf = async (event: GatewayEvent): Promise<string[]> => [
  ...logLinesOf(event).map((line) => `  log      ${line}`),
  ...metricsOf(event).map((line) => `  metric   ${line}`),
  ...healthOf(event).map((line) => `  health   ${line}`),
  ...(await auditLinesOf(event)).map((line) => `  audit    ${line}`),
  ...consoleOf(event).map((line) => `  console  ${line}`),
];

test('each event causes the lines, numbers and states that event-outputs.txt lists', async () => {
  const blocks = await Promise.all(
    numberedEvents.map(async ([title, event]) => [title, ...(await outputsOf(event))].join('\n').trimEnd()),
  );
  await expect(`${blocks.join('\n')}\n`).toMatchFileSnapshot('event-outputs.txt');
});

test.each(numberedEvents)('%s is read by a sink', async (title, event) => {
  expect((await outputsOf(event)).length > 0).toBe(!silent.has(title));
});

test('a server that is removed is forgotten: its next line that is no message is reported again', () => {
  const lines: string[] = [];
  const noise = new StdoutNoiseLog({
    logger: pino({ level: 'warn' }, { write: (line) => void lines.push(line) }),
    isAtTerminal: false,
  });
  const recorded = new GatewayRecord({ inspects: false, names: new OfferedNames() });
  const { record } = recorded;
  const receive = (event: GatewayEvent): void => {
    noise.receive(event);
    recorded.receive(event);
  };
  const drop = (): void =>
    receive({ type: 'shared-message-dropped', server: 's', reason: 'noise', text: Buffer.from('x') });
  drop();
  drop();
  expect([lines.length, record.events.after(0).length]).toEqual([1, 1]);
  receive({ type: 'server-stderr', server: 's', line: 'l', pid: undefined });
  receive({ type: 'server-removed', server: 's' });
  drop();
  expect([lines.length, record.events.after(0).length, record.stderr.of('s')]).toEqual([2, 2, []]);
});
