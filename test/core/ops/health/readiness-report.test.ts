import { describe, expect, it } from 'vitest';
import { readinessReport, serverReadiness } from '../../../../src/core/ops/health/readiness-report.ts';
import type { ServerStatus } from '../../../../src/core/ops/health/server-health.ts';
import type { Readiness } from '../../../../src/core/registry/sessions.ts';

const server = (fields: Partial<ServerStatus> = {}): ServerStatus => ({
  ...{ server: 'files', transport: 'stdio', era: undefined, last: undefined, probe: undefined, isRequired: false },
  ...fields,
});

describe('whether an instance is ready', () => {
  it.each<[Readiness, string[]]>([
    ['ready', []],
    ['degraded', ['store_degraded']],
    ['unavailable', ['store_unavailable']],
    ['draining', ['draining']],
  ])('%s has the reasons %j', (readiness, reasons) => {
    const report = readinessReport(readiness, [server()]);
    expect(report.status).toBe(readiness);
    expect(report.reasons.map(({ reason }) => reason)).toEqual(reasons);
  });

  it.each<[string, Partial<ServerStatus>, Readiness]>([
    ['is down, but not required', { probe: 'down' }, 'ready'],
    ['is required, and up', { probe: 'up', isRequired: true }, 'ready'],
    ['is required, and not asked yet', { isRequired: true }, 'ready'],
    ['is required, and down', { probe: 'down', isRequired: true }, 'unavailable'],
  ])('with a server that %s', (_, fields, status) => {
    expect(readinessReport('ready', [server(), server(fields)]).status).toBe(status);
  });

  it('does not depend on what the clients of a required server met', () => {
    const last = { state: 'failed', at: new Date(), reason: 'exited', why: 'The server exited.' } as const;
    expect(readinessReport('ready', [server({ isRequired: true, last })])).toEqual({ status: 'ready', reasons: [] });
  });

  it('counts the other instances, and says that one of them does not answer', () => {
    const counts = { reachable: 1, unreachable: 0 };
    expect(readinessReport('ready', [], { reachable: 1, unreachable: [] })).toEqual({
      ...{ status: 'ready', reasons: [], peers: counts },
    });
    const report = readinessReport('ready', [], { reachable: 1, unreachable: [{ instance: 'i', address: 'a' }] });
    expect([report.status, report.reasons.map(({ reason }) => reason)]).toEqual(['ready', ['instances_unreachable']]);
    expect(report.peers).toEqual({ reachable: 1, unreachable: 1 });
  });

  it.each<[Readiness, Readiness, string[]]>([
    ['ready', 'unavailable', ['store_unavailable']],
    ['draining', 'draining', ['draining', 'store_unavailable']],
  ])('%s with files that cannot be written is %s', (readiness, status, reasons) => {
    const report = readinessReport(readiness, [server()], undefined, false);
    expect([report.status, report.reasons.map(({ reason }) => reason)]).toEqual([status, reasons]);
    expect(report.reasons.at(-1)?.detail).not.toMatch(/shared|lease/);
  });

  it('names all reasons, and draining as the state', () => {
    const report = readinessReport('draining', [server({ probe: 'down', isRequired: true })]);
    expect(report.status).toBe('draining');
    expect(report.reasons.map(({ reason }) => reason)).toEqual(['draining', 'server_down']);
  });
});

it('a server is shown with null for what is not known', () => {
  expect(serverReadiness(server())).toEqual({ name: 'files', transport: 'stdio', era: null, last: null, probe: null });
});
