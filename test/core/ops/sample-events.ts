import type { BackendEnd } from '../../../src/core/backend/backend.ts';
import type { GatewayEvent } from '../../../src/core/ops/gateway-events.ts';
import { StoreUnavailable } from '../../../src/core/store/store-unavailable.ts';
import type { EventOf } from '../../../src/core/util/telemetry/emit.ts';

type Type = GatewayEvent['type'];

const server = 's';
const name = { server, session: 'abcd1234' };
const exited: BackendEnd = {
  reason: 'exited',
  detail: 'The server exited with code 1.',
  exitCode: 1,
  signal: null,
  lastOutput: ['Traceback'],
};
const silent: BackendEnd = { reason: 'closed', detail: 'The gateway closed it.' };
const text = Buffer.from(`not a message ${'x'.repeat(300)}`);
const user = { issuer: 'i', subject: 'u', client: '' };
const call = {
  origin: { server, era: 'legacy', principal: user, session: 'abcd1234' },
  method: 'tools/call',
  name: 'echo',
  durationMs: 110.4,
  serverMs: 100,
  waitedMs: 5,
  bytesIn: 10,
  bytesOut: 20,
  requestId: 'r1',
} as const;

/** Events of every type that a gateway emits, for the tables of its sinks. */
export const sampleEvents: { readonly [T in Type]: readonly EventOf<GatewayEvent, T>[] } = {
  'call-ended': [
    { type: 'call-ended', ...call, outcome: { kind: 'ok' } },
    { type: 'call-ended', ...call, outcome: { kind: 'error', code: -32602 } },
    { type: 'call-ended', ...call, outcome: { kind: 'fault', reason: 'server_exited' }, serverMs: undefined, id: 7 },
    { type: 'call-ended', ...call, outcome: { kind: 'left' } },
  ],
  'request-refused': [{ type: 'request-refused', server, reason: 'not_json' }],

  'tool-changed': [{ type: 'tool-changed', server, tool: 'echo', members: ['description'] }],
  'connection-dropped': [{ type: 'connection-dropped', maxConnections: 9 }],
  'connection-flooded': [{ type: 'connection-flooded', maxRequests: 64 }],
  'sender-refused': [
    {
      type: 'sender-refused',
      server,
      challenge: { reason: 'credentials_required', wwwAuthenticate: 'resource_metadata=' },
    },
    { type: 'sender-refused', server, challenge: { reason: 'host_not_allowed', detail: { why: 'Host', seen: 'h' } } },
  ],

  'server-stderr': [{ type: 'server-stderr', server, line: 'a line', pid: 7 }],
  'view-server-missing': [{ type: 'view-server-missing', server, member: 'm', reason: 'down' }],
  task: [
    { type: 'task', server, what: 'created', tool: 't', principal: user, durationMs: 0, reason: undefined },
    { type: 'task', server, what: 'failed', tool: 't', principal: user, durationMs: 5, reason: 'outcome_unknown' },
  ],
  'only-process': [{ type: 'only-process', server }],
  'ping-unknown': [{ type: 'ping-unknown', server }],
  'view-names': [{ type: 'view-names', server: 'v', leftOut: ['b__one'], refused: ['a.two'] }],
  'view-server-ready': [{ type: 'view-server-ready', server: 'v', member: server }],
  'view-crash-loop': [{ type: 'view-crash-loop', server: 'v', member: server, pauseMs: 30_000 }],
  'view-server-down': [
    { type: 'view-server-down', server: 'v', member: server, end: exited, isAtStart: false },
    { type: 'view-server-down', server: 'v', member: server, end: silent, isAtStart: true },
  ],
  'server-post-failed': [{ type: 'server-post-failed', server, detail: 'HTTP 500', dropped: 3 }],
  'transport-found': [{ type: 'transport-found', server, transport: 'sse' }],
  'tools-hidden': [{ type: 'tools-hidden', server, names: ['a', 'b'] }],
  'spare-ended': [{ type: 'spare-ended', server, end: exited }],
  'upstream-token': [
    { type: 'upstream-token', server, outcome: 'issued' },
    { type: 'upstream-token', server, outcome: 'upstream_token_refused', detail: 'refused (invalid_client)' },
  ],
  'policy-asked': [
    { type: 'policy-asked', server, phase: 'request', decision: 'allow', durationMs: 2 },
    { type: 'policy-asked', server, phase: 'result', decision: 'failed', durationMs: 1_000 },
  ],
  'policy-failed': [
    { type: 'policy-failed', server, phase: 'request', cause: 'slow', detail: 'The policy service did not answer.' },
  ],
  'spare-output-dropped': [{ type: 'spare-output-dropped', server }],
  'shared-output-dropped': [{ type: 'shared-output-dropped', server }],
  'server-answered': [
    { type: 'server-answered', server },
    { type: 'server-answered', server, era: 'modern' },
    { type: 'server-answered', server, wasSlow: true },
  ],
  'server-slow': [{ type: 'server-slow', server, detail: 'npx may download.' }],
  'server-silent': [{ type: 'server-silent', server, detail: 'No answer.', help: 'Look.', output: ['out'] }],
  package: [
    { type: 'package', server, package: '@x/y', state: 'installing', detail: 'in /packages' },
    { type: 'package', server, package: '@x/y', state: 'installed', detail: 'version 1.2.3' },
    { type: 'package', server, package: '@x/y', state: 'failed', detail: 'npm has no package @x/y.' },
  ],
  'command-not-found': [{ type: 'command-not-found', server, detail: 'No such command.' }],
  'era-seen': [{ type: 'era-seen', server, era: 'legacy' }],
  'server-removed': [{ type: 'server-removed', server }],
  'configuration-reloaded': [{ type: 'configuration-reloaded', added: ['a', 'b'], changed: [], removed: ['c'] }],
  'configuration-refused': [{ type: 'configuration-refused', detail: 'mcpServers: no server.' }],

  'session-started': [{ type: 'session-started', name, protocolVersion: '2025-11-25', startMs: 12, pid: 7 }],
  'session-ended': [
    { type: 'session-ended', name, reason: 'deleted', dropped: { late: 1 }, errorCode: undefined },
    { type: 'session-ended', name, reason: 'refused', dropped: {}, errorCode: -32022 },
    { type: 'session-ended', name, reason: 'server_start_timeout', dropped: {}, errorCode: undefined },
    { type: 'session-ended', name, reason: 'crash_loop', dropped: {}, errorCode: undefined },
  ],
  'session-adopted': [
    { type: 'session-adopted', name, pending: 2, lostInstance: undefined },
    { type: 'session-adopted', name, pending: 2, lostInstance: 'i' },
  ],
  'takeover-limit-reached': [{ type: 'takeover-limit-reached', name }],
  'backend-ended': [
    { type: 'backend-ended', name, end: exited, isAtStart: true },
    { type: 'backend-ended', name, end: exited, isAtStart: false },
  ],
  'session-hibernated': [{ type: 'session-hibernated', name, reason: 'reused' }],
  'backend-restored': [
    { type: 'backend-restored', name, pid: 8, restoration: { isWaking: true, losses: 0 } },
    { type: 'backend-restored', name, pid: 9, restoration: { isWaking: false, losses: 1 } },
    { type: 'backend-restored', name, pid: 9, restoration: { isWaking: false, losses: 0 } },
  ],
  'session-message-dropped': [
    { type: 'session-message-dropped', name, reason: 'noise', text, isAtStart: true },
    { type: 'session-message-dropped', name, reason: 'history_lost', text: undefined, isAtStart: false },
  ],
  'session-failed': [{ type: 'session-failed', name, cause: new Error('slip') }],
  'session-client-cut': [{ type: 'session-client-cut', name }],
  'stream-resumed': [
    { type: 'stream-resumed', server, session: 'abcd1234', outcome: 'resumed' },
    { type: 'stream-resumed', server, outcome: 'complete' },
  ],

  'era-found': [{ type: 'era-found', server, era: 'modern', probeMs: 4 }],
  'option-unused': [
    { type: 'option-unused', server, option: 'share' },
    { type: 'option-unused', server, option: 'share-of-sessions' },
    { type: 'option-unused', server, option: 'affinity' },
  ],
  'process-per-request': [{ type: 'process-per-request', server }],
  'shared-server-ready': [{ type: 'shared-server-ready', server, revisions: ['2026-07-28'], startMs: 5, pid: 7 }],
  'shared-server-ended': [
    { type: 'shared-server-ended', server, end: exited, inFlight: 2, runAgain: 1, dropped: { log: 1 } },
  ],
  'shared-start-failed': [
    { type: 'shared-start-failed', server, end: silent, isByProbe: false },
    { type: 'shared-start-failed', server, end: exited, isByProbe: true },
  ],
  'probe-output': [{ type: 'probe-output', server, lastOutput: ['out'] }],
  'shared-crash-loop': [{ type: 'shared-crash-loop', server, pauseMs: 30_000 }],
  'client-cut': [{ type: 'client-cut', server }],
  'filters-truncated': [{ type: 'filters-truncated', server }],
  'shared-server-closed': [
    { type: 'shared-server-closed', server, dropped: {} },
    { type: 'shared-server-closed', server, dropped: { late: 2 } },
  ],
  'shared-server-failed': [{ type: 'shared-server-failed', server, cause: new Error('slip') }],
  'shared-message-dropped': [
    { type: 'shared-message-dropped', server, reason: 'noise', text },
    { type: 'shared-message-dropped', server, reason: 'server_request', text: undefined },
  ],

  'store-joined': [{ type: 'store-joined' }],
  'peer-unreachable': [
    { type: 'peer-unreachable', instance: 'i', address: 'v3 tcp:10.0.0.1:9465', detail: 'It does not answer.' },
  ],
  'peer-reachable': [{ type: 'peer-reachable', instance: 'i', address: 'v3 tcp:10.0.0.1:9465' }],
  'peer-refused': [{ type: 'peer-refused', reason: 'stranger' }],
  'store-failed': [
    { type: 'store-failed', cause: new StoreUnavailable('unreachable') },
    { type: 'store-failed', cause: new Error('slip') },
  ],
  'store-command-failed': [{ type: 'store-command-failed', reason: 'full' }],
};

/** The types of all events. */
export const eventTypes = Object.keys(sampleEvents).filter((type): type is Type => type in sampleEvents);

/** All sample events with their number: `session-ended 2`. */
export const numberedEvents: readonly (readonly [title: string, event: GatewayEvent])[] = eventTypes.flatMap((type) =>
  sampleEvents[type].map((event, index) => [`${type} ${index + 1}`, event] as const),
);
