import type { BackendEnd, Challenge, ConsoleEvent, ConsoleHost, SessionName } from '../host.ts';
import { describeRefusal } from './incidents/refusals.ts';
import { redactStart } from './redacted-content.ts';
import { tellingLines } from './telling-lines.ts';

/** The kind of an event that is rare enough to be listed one by one. */
export type RecentEventKind =
  | 'session_started'
  | 'session_ended'
  | 'session_reopened'
  | 'session_adopted'
  | 'session_continued'
  | 'session_worn_out'
  | 'resumed'
  | 'history_lost'
  | 'backend_ended'
  | 'backend_restored'
  | 'hibernated'
  | 'woken'
  | 'shared_ready'
  | 'shared_ended'
  | 'start_failed'
  | 'only_process'
  | 'crash_loop'
  | 'noise'
  | 'redis_away'
  | 'redis_back'
  | 'refused'
  | 'reloaded'
  | 'reload_refused'
  | 'draining';

/** An event. It has no ids, and no content except the first line of a server that is not a message (P12). */
export interface RecentEvent {
  /** Events are numbered from 1. */
  readonly number: number;
  /** In milliseconds since 1970: the last time, if it happened several times. */
  readonly at: number;
  /** The number of the first event like this one. Further ones replace it while they are frequent. */
  readonly first: number;
  /** How often it happened, and when for the first time; absent for a single event. */
  readonly count?: number;
  readonly firstAt?: number;
  readonly kind: RecentEventKind;
  readonly server?: string;
  /** The short name of the session. */
  readonly session?: string;
  readonly detail?: string;
  /** Why a session ended or a request was refused. The page has words for it. */
  readonly reason?: string;
  /** The last lines of a server that ended, with likely credentials redacted. */
  readonly output?: readonly string[];
}

/** The number of events that are kept for pages that open later (P8). */
const maxKept = 200;

/** How much is kept of a line that is not a message. */
const maxNoise = 200;

/**
 * Requests to Redis keep failing during an outage, which is one event. Failures closer together than this belong to one
 * outage.
 */
const outageMs = 10_000;

/** Events of one kind at one server are one entry while they follow each other within this time. */
const groupMs = 300_000;

/** Events that a person may look for one by one: they are about the work of clients, not about trouble. */
const single: ReadonlySet<string> = new Set([
  'session_started',
  'session_reopened',
  'session_adopted',
  'session_continued',
  'noise',
  'reloaded',
  'reload_refused',
  'draining',
]);

/** The usual ends of sessions are not grouped, either. */
const usualEnds: ReadonlySet<string | undefined> = new Set(['deleted', 'idle', 'operator', 'client_gone']);

/** How much is kept of the last lines of a server that ended (P8). */
const maxOutputLines = 3;
const maxOutputLine = 300;

/** How much is kept of a text about the configuration. */
const maxDetail = 500;

/** Keeps the newest rare events. */
export class RecentEvents {
  readonly #host: Pick<ConsoleHost, 'redact'>;
  readonly #kept: RecentEvent[] = [];
  /** The servers whose first line that is not a message was recorded. */
  readonly #noisyServers = new Set<string>();
  #newest = 0;
  #lastFailureAt = Number.NEGATIVE_INFINITY;

  constructor(host: Pick<ConsoleHost, 'redact'>) {
    this.#host = host;
  }

  /** Returns the kept events after this number, oldest first. */
  after(number: number): readonly RecentEvent[] {
    return this.#kept.filter((event) => event.number > number);
  }

  /** Records an event, if it is rare enough. */
  receive(event: ConsoleEvent): void {
    switch (event.type) {
      case 'session-started': {
        const { name, protocolVersion, startMs } = event;
        // The session of a group of modern clients is opened again under its name.
        const isReopened = this.#kept.some(
          ({ kind, server, session }) => kind === 'session_ended' && session === name.session && server === name.server,
        );
        const kind = isReopened ? 'session_reopened' : 'session_started';
        return this.#add(kind, name, `Revision ${protocolVersion.slice(0, 32)}, after ${startMs} ms.`);
      }
      case 'session-ended':
        return this.#add('session_ended', { ...event.name, reason: event.reason });
      case 'session-adopted':
        return this.#add(
          event.lostInstance === undefined ? 'session_continued' : 'session_adopted',
          event.name,
          `Unanswered requests: ${event.pending}.`,
        );
      case 'takeover-limit-reached':
        return this.#add('session_worn_out', event.name);
      case 'backend-ended':
        return this.#addEnd('backend_ended', event.name, event.end);
      case 'session-hibernated':
        return this.#add('hibernated', { ...event.name, reason: event.reason });
      case 'backend-restored': {
        const { isWaking, losses } = event.restoration;
        if (isWaking) return this.#add('woken', event.name);
        const times = losses === 1 ? 'once' : `${losses} times`;
        return this.#add(
          'backend_restored',
          event.name,
          losses === 0 ? undefined : `Restarted ${times} in this session.`,
        );
      }
      case 'session-message-dropped':
        if (event.reason === 'history_lost') this.#add('history_lost', event.name);
        if (event.reason === 'noise') this.#addNoise(event.name.server, event.text);
        return;
      case 'shared-message-dropped':
        if (event.reason === 'noise') this.#addNoise(event.server, event.text);
        return;
      case 'server-removed':
        this.#noisyServers.delete(event.server);
        return;
      case 'sender-refused':
        return this.#addRefusal(event.server, event.challenge, event.address);
      case 'configuration-reloaded':
        return this.#add('reloaded', {}, describeChanges(event));
      case 'configuration-refused':
        return this.#add('reload_refused', {}, event.detail.slice(0, maxDetail));
      case 'stream-resumed': {
        const { server, session, outcome } = event;
        if (outcome === 'resumed') this.#add('resumed', { server, ...(session !== undefined && { session }) });
        return;
      }
      case 'shared-server-ready':
        return this.#add('shared_ready', { server: event.server }, `After ${event.startMs} ms.`);
      case 'shared-server-ended': {
        const { server, end, inFlight } = event;
        return this.#addEnd('shared_ended', { server }, end, ` Requests in flight: ${inFlight}.`);
      }
      case 'shared-start-failed':
        if (!event.isByProbe) this.#addEnd('start_failed', { server: event.server }, event.end);
        return;
      case 'only-process':
        return this.#add('only_process', { server: event.server }, 'Sessions of one user share it.');
      case 'shared-crash-loop':
        return this.#add('crash_loop', { server: event.server });
      case 'view-crash-loop':
        return this.#add('crash_loop', { server: event.member });
      case 'store-joined':
        return this.#add('redis_back');
      case 'store-failed': {
        const now = performance.now();
        if (now - this.#lastFailureAt >= outageMs) this.#add('redis_away');
        this.#lastFailureAt = now;
      }
    }
  }

  /** Records that an instance drains: this one, or another one that shares the store. */
  addDrain(instance?: string): void {
    this.#add('draining', {}, instance);
  }

  /** Records the first line of a server on stdout that is not a message. */
  #addNoise(server: string, line: Uint8Array = Buffer.alloc(0)): void {
    if (this.#noisyServers.has(server)) return;
    this.#noisyServers.add(server);
    this.#add(
      'noise',
      { server },
      redactStart(this.#host, Buffer.from(line.subarray(0, 2 * maxNoise)).toString(), maxNoise),
    );
  }

  /** Records a refused request: why, and from where. */
  #addRefusal(server: string, { reason, detail }: Challenge, address: string | undefined): void {
    const why = detail === undefined ? [] : [describeRefusal(detail)];
    const from = address === undefined ? [] : [`from ${address}`];
    this.#add('refused', { server, reason }, [...why, ...from].join(', '));
  }

  /** Records the end of a server, with the last lines that it wrote. */
  #addEnd(kind: RecentEventKind, name: Partial<SessionName>, { detail, lastOutput = [] }: BackendEnd, more = ''): void {
    const output = tellingLines(lastOutput, maxOutputLines).map((line) => redactStart(this.#host, line, maxOutputLine));
    this.#add(kind, name, `${detail}${more}`, output);
  }

  #add(
    kind: RecentEventKind,
    about: Pick<RecentEvent, 'server' | 'session' | 'reason'> = {},
    detail?: string,
    output: readonly string[] = [],
  ): void {
    this.#newest += 1;
    const at = Date.now();
    const earlier = this.#takeLike(kind, about, at);
    this.#kept.push({
      number: this.#newest,
      first: earlier?.first ?? this.#newest,
      at,
      ...(earlier && { count: (earlier.count ?? 1) + 1, firstAt: earlier.firstAt ?? earlier.at }),
      kind,
      ...about,
      ...(detail !== undefined && detail !== '' && { detail }),
      ...(output.length > 0 && { output }),
    });
    if (this.#kept.length > maxKept) this.#kept.shift();
  }

  /** Removes the last event of this kind at this server, if it was a short time ago. */
  #takeLike(
    kind: RecentEventKind,
    { server, reason }: Pick<RecentEvent, 'server' | 'reason'>,
    now: number,
  ): RecentEvent | undefined {
    if (single.has(kind) || (kind === 'session_ended' && usualEnds.has(reason))) return undefined;
    const index = this.#kept.findLastIndex(
      (event) => event.kind === kind && event.server === server && event.reason === reason && now - event.at < groupMs,
    );
    return index < 0 ? undefined : this.#kept.splice(index, 1)[0];
  }
}

/** Describes a reload: `Added: a, b. Removed: c.` */
function describeChanges(changes: Readonly<Record<'added' | 'changed' | 'removed', readonly string[]>>): string {
  const parts = (['added', 'changed', 'removed'] as const)
    .filter((kind) => changes[kind].length > 0)
    .map((kind) => `${kind[0]?.toUpperCase()}${kind.slice(1)}: ${changes[kind].join(', ')}.`);
  return parts.length === 0 ? 'The servers are unchanged.' : parts.join(' ').slice(0, maxDetail);
}
