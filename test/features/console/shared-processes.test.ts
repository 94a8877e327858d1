import { type ServerState, SnapshotBuilder } from '@mcp-gangway/console';
import { expect, test } from 'vitest';
import { linkBackends } from '../../../src/core/backend/link/link.ts';
import { OfferedNames } from '../../../src/core/backend/offered-names.ts';
import { GatewayRecord } from '../../../src/features/console/gateway-record.ts';
import { createFakeServer } from '../../support/fake-backend.ts';

const events = {
  onMessages: () => undefined,
  onNoise: () => undefined,
  onUnanswered: () => undefined,
  onEnd: () => undefined,
};
const files: ServerState = {
  name: 'files',
  transport: 'stdio',
  era: 'legacy',
  sharedCalls: 0,
  health: { state: 'unknown' },
  isProbed: false,
};

/** Builds snapshots of a server whose sessions use these processes of 100 bytes each. */
function createBuilder(processes: Readonly<Record<string, number>>): SnapshotBuilder {
  const { record, backends } = new GatewayRecord({ inspects: false, names: new OfferedNames() });
  const server = createFakeServer();
  const pids = Object.values(processes);
  for (const [session, pid] of Object.entries(processes))
    linkBackends(
      (...args) => Object.defineProperty(server.open(...args), 'pid', { value: pid }),
      [backends.observe('files')],
    )(events, { session });
  const memory = new Map(pids.map((pid) => [pid, 100]));
  return new SnapshotBuilder({
    record,
    backends,
    version: '1',
    name: 'instance',
    maxSessions: 10,
    readiness: () => 'ready',
    sessionCount: () => 0,
    sessions: () => [],
    tasks: () => [],
    openStreams: () => new Map(),
    store: () => ({ kind: 'memory', isUp: true }),
    servers: () => [files],
    memoryOf: () => memory,
  });
}

test('a process that sessions share counts once in the number of processes and in the memory', () => {
  const builder = createBuilder({ a: 7, b: 7, c: 8 });
  const { servers } = builder.snapshot({ search: '', page: 0, isEverywhere: false }, { instances: [], sessions: [] });
  expect(servers).toMatchObject([{ childBytes: 200, childCount: 2 }]);
  expect(servers[0]?.children.map(({ pid, session, sharedBy }) => [pid, session, sharedBy])).toEqual([
    [7, undefined, 2],
    [8, 'c', 1],
  ]);
  const { childBytes, bytesByServer } = builder.gauges();
  expect([childBytes, bytesByServer.get('files')]).toEqual([200, 200]);
});
