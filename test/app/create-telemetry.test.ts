import { pino } from 'pino';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createTelemetry, type Watchers } from '../../src/app/create-telemetry.ts';
import type { GatewayConfig } from '../../src/config/config.ts';
import { linkBackends } from '../../src/core/backend/link/link.ts';
import { CallReport } from '../../src/core/call/call-report.ts';
import type { ConsoleHook } from '../../src/core/ops/console-hook.ts';
import { ServerHealth } from '../../src/core/ops/health/server-health.ts';
import type { Log } from '../../src/core/ops/log/log.ts';
import { logParts } from '../../src/core/ops/log/log-parts.ts';
import { StoreUnavailable } from '../../src/core/store/store-unavailable.ts';
import { reportFault, reportFaultsTo } from '../../src/core/util/boundary.ts';
import { connectMetrics } from '../../src/features/metrics/feature.ts';
import { Metrics } from '../../src/features/metrics/metrics.ts';
import { createFakeServer } from '../support/fake-backend.ts';

function create(adminPort: number, watchers: Partial<Watchers> = {}) {
  onTestFinished(reportFaultsTo(() => undefined));
  const lines: Record<string, unknown>[] = [];
  const logger = pino({ level: 'info' }, { write: (line) => void lines.push(JSON.parse(line)) });
  const log = Object.fromEntries(logParts.map((part) => [part, logger])) as Log;
  const config = {
    listen: { adminPort },
    observe: { logFormat: 'json' },
    servers: [],
    cluster: { redis: 'redis://localhost' },
  } as unknown as GatewayConfig;
  const health = new ServerHealth();
  health.add('s', { transport: 'stdio', isRequired: false, era: () => undefined });
  const numbers = new Metrics();
  const features = { metrics: { create: () => connectMetrics(numbers, { toolNames: undefined }) } };
  const telemetry = createTelemetry({ config, features }, log, { health, ...watchers });
  return { telemetry, numbers, lines, health };
}

const hookOf = (parts: Partial<ConsoleHook>): ConsoleHook => ({
  receive: () => undefined,
  meter: () => undefined,
  observe: () => () => undefined,
  open: () => Promise.reject(new Error('no page')),
  ...parts,
});

const origin = { server: 's', era: 'legacy', principal: undefined } as const;

describe('the telemetry of a gateway', () => {
  test('has no meters and no reports of calls where nobody reads them', () => {
    const { telemetry } = create(0);
    expect([telemetry.meterOf, telemetry.calls, telemetry.metrics]).toEqual([undefined, undefined, undefined]);
    expect(() => telemetry.sessions.delivered.live.add(1)).not.toThrow();
  });

  test('gives an event to the log, the health of servers and the console', () => {
    const received: string[] = [];
    const consoleHook = hookOf({ receive: ({ type }) => void received.push(type) });
    const { telemetry, lines, health } = create(1, { consoleHook });
    telemetry.emit({ type: 'command-not-found', server: 's', detail: 'No such command.' });
    expect(lines).toMatchObject([{ msg: 'cannot start the server; its sessions will fail' }]);
    expect(health.lastFailureOf('s')?.reason).toBe('not_found');
    expect(received).toEqual(['command-not-found']);
  });

  test('gives calls to metrics and console, with names for the console', () => {
    const received: unknown[] = [];
    const consoleHook = hookOf({ receive: (event) => void received.push(event) });
    const { telemetry, numbers } = create(1, { consoleHook });
    const { calls } = telemetry;
    if (calls === undefined) throw new Error('nobody wants calls');
    const report = new CallReport(calls, origin);
    report.left();
    expect([calls.wantsNames, received]).toEqual([true, [report]]);
    expect(numbers.samples('requests').filter(({ value }) => value > 0)).toHaveLength(1);
  });

  test('a console that throws is logged and counted once, and harms no other sink', () => {
    const consoleHook = hookOf({
      receive() {
        throw new Error('slip');
      },
    });
    const { telemetry, numbers, lines } = create(1, { consoleHook });
    telemetry.emit({ type: 'client-cut', server: 's' });
    expect(lines.map(({ msg, seam }) => [msg, seam])).toEqual([
      ['disconnected a client that does not read its stream', undefined],
      ['internal error', 'background'],
    ]);
    const counted = numbers.samples('internalErrors').filter(({ value }) => value > 0);
    expect(counted).toMatchObject([{ labels: { seam: 'background' }, value: 1 }]);
    expect(numbers.samples('clientsCut')).toMatchObject([{ value: 1 }]);
  });

  test('a boundary reports a store that is away as such, and anything else as a fault', () => {
    const { numbers, lines } = create(1);
    const faults = () => numbers.samples('internalErrors').filter(({ value }) => value > 0);
    reportFault('session', new StoreUnavailable('unreachable'));
    expect([lines.map(({ msg }) => msg), faults()]).toEqual([['Redis is unavailable'], []]);
    reportFault('session', new Error('slip'));
    expect(lines.map(({ msg }) => msg)).toEqual(['Redis is unavailable', 'internal error']);
    expect(faults()).toMatchObject([{ labels: { seam: 'session' }, value: 1 }]);
  });

  test('meters are the numbers of the catalogue', () => {
    const { telemetry, numbers } = create(1);
    telemetry.sessions.delivered.replayed.add(3);
    telemetry.meterOf?.('streams', 's').add(2);
    telemetry.meterOf?.('streams', 's').add(-1);
    telemetry.meterOf?.('redisSeconds').add(0.5);
    expect(numbers.samples('eventsDelivered').map(({ value }) => value)).toEqual([0, 3]);
    expect(numbers.samples('streams')).toMatchObject([{ labels: { server: 's' }, value: 1 }]);
    expect(numbers.samples('redisSeconds').at(-1)).toMatchObject({ value: 1 });
  });

  test('processes are counted and traced, and backends of clients are observed by the console', () => {
    const created: string[] = [];
    const creator = (what: string) => (server: string) => () => {
      created.push(`${what} ${server}`);
      return undefined;
    };
    const consoleHook = hookOf({ observe: creator('console') });
    const { telemetry, numbers } = create(1, { consoleHook, traceBackends: creator('trace') });
    const { open } = createFakeServer();
    const events = {
      onMessages: () => undefined,
      onNoise: () => undefined,
      onUnanswered: () => undefined,
      onEnd: () => undefined,
    };
    linkBackends(open, telemetry.processInterceptors('s'))(events);
    expect(created.splice(0)).toEqual(['trace s']);
    expect(numbers.samples('backendStarts')).toMatchObject([{ labels: { server: 's' }, value: 1 }]);
    linkBackends(open, telemetry.clientInterceptors('s'))(events);
    expect(created).toEqual(['console s']);
  });
});
