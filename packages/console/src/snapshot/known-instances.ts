import type { Changes } from '../host.ts';
import type { SessionUser } from '../sessions/session-users.ts';
import { type InstanceTasks, readTasks } from '../sessions/task-view.ts';
import { SharedTopic } from './shared-topic.ts';

/** The summary that an instance publishes to the instances that share its store. */
export interface InstanceSummary {
  readonly name: string;
  readonly version: string;
  readonly readiness: string;
  readonly sessions: number;
  readonly streams: number;
  /** Whose sessions each server has there. An older version of the gateway does not say it. */
  readonly servers?: readonly SessionsOfServer[] | undefined;
  /** The tasks whose calls run there. An older version of the gateway does not say it. */
  readonly tasks?: InstanceTasks | undefined;
}

/** The sessions of one server on an instance, and their most frequent users. */
export interface SessionsOfServer {
  readonly server: string;
  readonly sessions: number;
  readonly users: readonly SessionUser[];
}

/** An instance in the list of a page. */
export interface InstanceView extends InstanceSummary {
  readonly isThis: boolean;
  /** The age of the summary, in milliseconds; 0 for this instance. */
  readonly ageMs: number;
}

/** The settings of the known instances. */
export interface KnownInstancesOptions {
  /** The change announcements between instances; undefined for a single instance. */
  readonly changes: Changes | undefined;
  /** The name of this instance. */
  readonly name: string;
  summary(): InstanceSummary;
  /** Is told once when another instance drains. */
  onDraining?(name: string): void;
  /** Receives failures of the store. */
  onFailed(cause: unknown): void;
}

/** The topic of questions and summaries. */
const topic = 'status';

/** How often the other instances are asked while a page is open. */
const questionIntervalMs = 3_000;

/** An instance without an answer for this time is not shown. */
const expiryMs = 10_000;

/** The minimum time between two answers. One answer serves the questions of all instances. */
const answerIntervalMs = 1_000;

/** The limit for known instances (P8), because everything with access to the store could publish summaries. */
const maxKnown = 1_000;

/** How many servers a summary may have (P8): with three users each, it stays below the limit of the store. */
export const maxServersInSummary = 60;

const question = Buffer.from('?');

/**
 * Finds the other instances that share the store. There is no stored list: while a page is open, its instance asks, and
 * all live instances answer.
 */
export class KnownInstances {
  readonly #options: KnownInstancesOptions;
  readonly #others = new Map<string, { readonly summary: InstanceSummary; readonly at: number }>();
  #answeredAt = Number.NEGATIVE_INFINITY;
  #askedAt = Number.NEGATIVE_INFINITY;
  readonly #topic: SharedTopic;

  constructor(options: KnownInstancesOptions) {
    this.#options = options;
    const { changes, onFailed } = options;
    this.#topic = new SharedTopic({ changes, topic, onFailed, onMessage: (text) => this.#onMessage(text) });
  }

  /** Returns all known instances, this one first. Asks the others if the last question is old enough. */
  list(): readonly InstanceView[] {
    const now = performance.now();
    this.#ask(now);
    for (const [name, { at }] of this.#others) if (now - at > expiryMs) this.#others.delete(name);
    const others = Array.from(this.#others.values(), ({ summary, at }) => ({
      ...summary,
      isThis: false,
      ageMs: Math.round(now - at),
    }));
    return [
      { ...this.#options.summary(), isThis: true, ageMs: 0 },
      ...others.sort((a, b) => (a.name < b.name ? -1 : 1)),
    ];
  }

  close(): Promise<void> {
    return this.#topic.close();
  }

  #ask(now: number): void {
    this.#topic.follow();
    if (now - this.#askedAt < questionIntervalMs) return;
    this.#askedAt = now;
    this.#topic.publish(question);
  }

  #onMessage(text: Buffer): void {
    if (!text.equals(question)) return this.#recordSummary(text);
    const now = performance.now();
    if (now - this.#answeredAt < answerIntervalMs) return;
    this.#answeredAt = now;
    this.#topic.publish(Buffer.from(JSON.stringify(this.#options.summary())));
  }

  #recordSummary(text: Buffer): void {
    const summary = parseSummary(text);
    if (summary === undefined || summary.name === this.#options.name) return;
    const known = this.#others.get(summary.name);
    if (known === undefined && this.#others.size >= maxKnown) return;
    const isDraining = summary.readiness === 'draining' && known?.summary.readiness !== 'draining';
    if (isDraining) this.#options.onDraining?.(summary.name);
    this.#others.set(summary.name, { summary, at: performance.now() });
  }
}

/** Parses a summary; undefined if it is not understood. Another version of the gateway may publish other texts. */
function parseSummary(text: Buffer): InstanceSummary | undefined {
  try {
    const value = JSON.parse(text.toString()) as Partial<InstanceSummary> | null;
    const { name, version, readiness, sessions, streams, servers, tasks } = value ?? {};
    const isSummary = typeof name === 'string' && typeof version === 'string' && typeof readiness === 'string';
    if (!isSummary || typeof sessions !== 'number' || typeof streams !== 'number') return undefined;
    return { name, version, readiness, sessions, streams, servers: readServers(servers), tasks: readTasks(tasks) };
  } catch {
    return undefined; // expected: not a summary of this version
  }
}

/** Reads whose sessions an instance has. What is not understood is left out. */
function readServers(value: unknown): SessionsOfServer[] | undefined {
  if (!Array.isArray(value)) return undefined;
  return value.slice(0, maxServersInSummary).flatMap((entry: Partial<SessionsOfServer> | null) => {
    const { server, sessions, users } = entry ?? {};
    if (typeof server !== 'string' || typeof sessions !== 'number' || !Array.isArray(users)) return [];
    return [{ server, sessions, users: users.filter(isUser) }];
  });
}

function isUser(value: Partial<SessionUser> | null): value is SessionUser {
  const { user, client, sessions } = value ?? {};
  return (user === undefined || typeof user === 'string') && typeof client === 'string' && typeof sessions === 'number';
}
