import { describe, expect, it } from 'vitest';
import { CallReport } from '../../../src/core/call/call-report.ts';
import { catalogue, type Metric } from '../../../src/core/ops/metrics/catalogue.ts';
import { readOne } from '../../../src/core/protocol/message/message.ts';
import { CallMetrics } from '../../../src/features/metrics/collectors/call-metrics.ts';
import { watchProcesses } from '../../../src/features/metrics/collectors/process-metrics.ts';
import { createExposition } from '../../../src/features/metrics/exposition.ts';
import { Metrics } from '../../../src/features/metrics/metrics.ts';
import { Distribution } from '../../../src/features/metrics/series.ts';

describe('the catalogue', () => {
  it.each(Object.values<Metric>(catalogue))(
    '$name is named as Prometheus has it',
    ({ name, type, help, labels, bounds }) => {
      // prometheus.io/docs/practices/naming: base units, and `_total` for what only grows.
      expect(name).toMatch(/^mcp_gangway_[a-z][a-z_]*[a-z]$/);
      expect(name.endsWith('_total')).toBe(type === 'counter');
      expect(name).not.toMatch(/_(ms|milliseconds|kb|mb|percent)(_|$)/);
      expect(help).toMatch(/^[A-Z].*\.$/);
      for (const label of labels) expect(label.name).not.toMatch(/id$|session|user|principal|uri/);
      expect(bounds).toEqual([...bounds].sort((a, b) => a - b));
      expect(bounds.length > 0).toBe(type === 'histogram');
    },
  );
});

describe('numbers', () => {
  it('lie in the bucket whose bound they do not exceed, and are summed up', () => {
    const seconds = new Distribution([0.1, 1]);
    for (const value of [0.05, 0.1, 0.100001, 1, 7]) seconds.add(value);
    expect(seconds.counts).toEqual([2, 2, 1]);
    expect(seconds.sum).toBeCloseTo(8.250001);
  });

  it('are the same ones for the same labels', () => {
    const faults = new Metrics().tallies('faults');
    faults.of('a', 'b').value += 1;
    faults.of('a', 'b').value += 1;
    expect(Array.from(faults.entries(), ({ labels, number }) => [labels, number.value])).toEqual([[['a', 'b'], 2]]);
  });

  it('whose labels are known begin at zero, and gauges and others do not', () => {
    const metrics = new Metrics();
    metrics.createSeries(['one', 'two']);
    expect(metrics.samples('resumes')).toHaveLength(10);
    expect(metrics.samples('internalErrors')).toContainEqual({
      name: 'mcp_gangway_internal_errors_total',
      labels: { seam: 'request' },
      value: 0,
    });
    expect([metrics.samples('dropped'), metrics.samples('redisUp')]).toEqual([[], []]);
  });

  it('of requests begin at zero with the methods that their era has, and nothing else is ever counted', () => {
    const metrics = new Metrics();
    metrics.createSeries(['s']);
    const begun = metrics.samples('requests');
    const of = (wanted: object) =>
      begun.filter(({ labels }) => Object.entries(wanted).every(([k, v]) => labels[k] === v));
    expect(begun.every(({ value }) => value === 0)).toBe(true);
    expect(of({ era: 'legacy', method: 'tools/call' })).toHaveLength(5);
    expect([of({ era: 'modern', method: 'initialize' }), of({ era: 'legacy', method: 'server/discover' })]).toEqual([
      [],
      [],
    ]);
    const calls = { emit: new CallMetrics(metrics).receive, wantsNames: false };
    for (const method of ['tools/call', 'mine']) {
      const request = readOne(Buffer.from(`{"jsonrpc":"2.0","id":1,"method":"${method}"}`));
      new CallReport(calls, { server: 's', era: 'modern', principal: undefined }, request).left();
    }
    expect(metrics.samples('requests')).toHaveLength(begun.length);
    expect(begun.length).toBeLessThan(150); // for each server
  });

  it('of faults that are no mistake of a client begin at zero, and those are few', () => {
    const metrics = new Metrics();
    metrics.createSeries(['s']);
    const begun = metrics.samples('faults');
    const reasons = begun.map(({ labels }) => labels['reason']);
    expect(reasons).toEqual(
      expect.arrayContaining(['server_start_failed', 'server_exited', 'store_unavailable', 'internal']),
    );
    expect(reasons).not.toContain('not_json');
    expect(begun.every(({ labels, value }) => labels['server'] === 's' && value === 0)).toBe(true);
    expect(begun.length).toBeLessThan(45); // for each server
    const call = new CallReport(
      { emit: new CallMetrics(metrics).receive, wantsNames: false },
      { server: 's', era: 'legacy', principal: undefined },
      readOne(Buffer.from('{"jsonrpc":"2.0","id":1,"method":"tools/list"}')),
    );
    call.failed('server_exited');
    expect(metrics.samples('faults').filter(({ value }) => value > 0)).toHaveLength(1);
    expect(metrics.samples('faults')).toHaveLength(begun.length);
  });

  it('are what Prometheus reads: cumulative buckets, escaped labels', async () => {
    const metrics = new Metrics();
    metrics.distributions('startSeconds').of('a "b" \\c').add(0.2);
    const text = await createExposition(metrics).render();
    const name = 'mcp_gangway_server_start_seconds';
    const server = 'server="a \\"b\\" \\\\c"';
    for (const line of [
      `# TYPE ${name} histogram`,
      `${name}_bucket{${server},le="0.1"} 0`,
      `${name}_bucket{${server},le="0.25"} 1`,
      `${name}_bucket{${server},le="60"} 1`,
      `${name}_bucket{${server},le="+Inf"} 1`,
      `${name}_sum{${server}} 0.2`,
      `${name}_count{${server}} 1`,
    ])
      expect(text).toContain(`${line}\n`);
  });
});

describe('calls', () => {
  const message = (text: string) => readOne(Buffer.from(text)) as NonNullable<ReturnType<typeof readOne>>;
  const open = (metrics: Metrics, method: string): CallReport => {
    const request = message(`{"jsonrpc":"2.0","id":1,"method":"${method}"}`);
    const telemetry = { emit: new CallMetrics(metrics).receive, wantsNames: false };
    return new CallReport(telemetry, { server: 's', era: 'legacy', principal: undefined }, request);
  };
  const outcomes = (metrics: Metrics) =>
    metrics
      .samples('requests')
      .flatMap(({ labels: { method, outcome }, value }) => (value > 0 ? [`${method} ${outcome} ${value}`] : []));

  it('end once, in the way in which they ended first', () => {
    const metrics = new Metrics();
    const call = open(metrics, 'tools/call');
    call.sent();
    call.answered(message('{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}'));
    call.left();
    call.failed('internal');
    expect(outcomes(metrics)).toEqual(['tools/call error 1']);
    expect(metrics.samples('faults')).toEqual([]);
  });

  it('that end with what went wrong in a tool are told from those that went well', () => {
    const metrics = new Metrics();
    const failed = message('{"jsonrpc":"2.0","id":1,"result":{"content":[],"isError":true}}');
    open(metrics, 'tools/call').answered(failed);
    open(metrics, 'prompts/get').answered(failed); // there it means nothing
    expect(outcomes(metrics)).toEqual(['tools/call tool_error 1', 'prompts/get ok 1']);
  });

  it('that were never handed over have no time of the server', () => {
    const metrics = new Metrics();
    open(metrics, 'tools/list').failed('draining');
    const counts = metrics.samples('requestServerSeconds').filter(({ name }) => name.endsWith('_count'));
    expect(counts.map(({ value }) => value)).toEqual([0]);
    expect(outcomes(metrics)).toEqual(['tools/list fault 1']);
  });

  it('with a method of their own are `other`, so that nobody can make labels', () => {
    const metrics = new Metrics();
    for (let n = 0; n < 100; n += 1) open(metrics, `my/method${n}`).left();
    expect(outcomes(metrics)).toEqual(['other left 100']);
  });
});

describe('processes', () => {
  const live = new Map([['s', new Set([{ pid: 7 }])]]);

  it('add up what is new of their processor time, also where a pid comes again', async () => {
    const metrics = new Metrics();
    let found = [{ group: 7, identity: '7 100', residentBytes: 10, cpuMs: 1_000 }];
    let nowMs = 0;
    watchProcesses(metrics, { live, usageOf: async () => found, now: () => nowMs });
    const look = async (next: typeof found, afterMs = 5_000) => {
      found = next;
      nowMs += afterMs;
      await metrics.refresh();
      return [metrics.tallies('processCpu').of('s').value, metrics.tallies('processMemory').of('s').value];
    };
    expect(await look(found)).toEqual([1, 10]);
    expect(await look([{ group: 7, identity: '7 100', residentBytes: 30, cpuMs: 1_500 }])).toEqual([1.5, 30]);
    expect(await look([{ group: 7, identity: '7 900', residentBytes: 5, cpuMs: 200 }])).toEqual([1.7, 5]);
    expect(await look([], 4_999)).toEqual([1.7, 5]); // what was seen is still fresh
    expect(await look([])).toEqual([1.7, 0]);
  });

  it('count their processor time once, also if a measurement between finds nothing', async () => {
    const metrics = new Metrics();
    const processes = [{ group: 7, identity: '7 100', residentBytes: 10, cpuMs: 100_000 }];
    let found = processes;
    let nowMs = 0;
    watchProcesses(metrics, { live, usageOf: async () => found, now: () => nowMs });
    for (const next of [processes, [], processes]) {
      found = next;
      nowMs += 10_000;
      await metrics.refresh();
    }
    expect(metrics.tallies('processCpu').of('s').value).toBe(100);
  });

  it('that cannot be looked at in time do not hold up a scrape', async () => {
    const metrics = new Metrics();
    let looks = 0;
    let end: () => void = () => undefined;
    const usageOf = async () => {
      looks += 1;
      await new Promise<void>((resolve) => {
        end = resolve;
      });
      return [];
    };
    watchProcesses(metrics, { live, usageOf });
    await metrics.refresh();
    await metrics.refresh();
    expect(looks).toBe(1); // one at a time
    end();
  });
});
