import type { ProcessHolder } from '../../core/backend/backend.ts';
import { valueAt } from '../../core/protocol/json.ts';
import type { Message } from '../../core/protocol/message/message.ts';
import { BoundedMap } from '../../core/util/bounded-map.ts';

/** Names of clients that are known to open a session for each call, as they are in `clientInfo`. */
const knownNames: ReadonlySet<string> = new Set(['openai-mcp', 'Anthropic/ClaudeAI', 'Anthropic/Toolbox']);

/** So many sessions within this time, each with few calls, show a client that opens a session for each call. */
const seenSessions = 3;
const seenWithinMs = 60_000;

/** A session for one call may also list the tools. */
const maxCalls = 2;

/** How many clients are remembered, and how many of them are known to open a session for each call (P8). */
const maxRemembered = 1_000;

/** How many of the newest sessions of a client count (P8). More than a client has at once that makes parallel calls. */
const maxVisits = 32;

/** One session of a client. */
interface Visit {
  readonly at: number;
  /** Undefined once the session has left its process. */
  holder: ProcessHolder | undefined;
  calls: number;
}

/** The newest sessions of each client, and the clients that open a session for each call (docs/decisions/0164). */
export class SessionPerCall {
  /** By the key of the client, the oldest first. */
  readonly #visits = new BoundedMap<string, Visit[]>(maxRemembered);
  readonly #seen = new BoundedMap<string, true>(maxRemembered);
  /** Sessions that come back to the gateway for a process are not new. */
  readonly #known = new WeakSet<ProcessHolder>();

  /** A session looks for a process. Returns true if its client opens a session for each call. */
  noteSession(key: string, holder: ProcessHolder, initialize: Message): boolean {
    if (this.#known.has(holder)) return this.#has(key, initialize);
    this.#known.add(holder);
    const visits = this.#visits.get(key) ?? [];
    const evidence = judge(visits);
    if (evidence.isLong || isLong(visits.at(-1))) this.#seen.delete(key);
    else if (evidence.short.length >= seenSessions - 1) this.#seen.set(key, true);
    this.#visits.set(key, [...visits, { at: performance.now(), holder, calls: 0 }].slice(-maxVisits));
    return this.#has(key, initialize);
  }

  #has(key: string, initialize: Message): boolean {
    return this.#seen.has(key) || isKnownName(initialize);
  }

  /**
   * A session has left its process. Returns how long a later session may want the process, because its client may turn
   * out to open a session for each call; 0 if it cannot.
   */
  noteLeft(key: string, holder: ProcessHolder): number {
    const visits = this.#visits.get(key) ?? [];
    const visit = visits.find((each) => each.holder === holder);
    if (visit === undefined) return 0;
    visit.calls = holder.answered;
    visit.holder = undefined;
    const { isLong, short } = judge(visits);
    const first = short.at(1 - seenSessions);
    return isLong || first === undefined ? 0 : first.at + seenWithinMs - performance.now();
  }
}

/** The sessions of the last time: those that were short, and whether one was long. */
function judge(visits: readonly Visit[]): { readonly isLong: boolean; readonly short: readonly Visit[] } {
  const since = performance.now() - seenWithinMs;
  const recent = visits.filter(({ at }) => at > since);
  return { isLong: recent.some(isLong), short: recent.filter(isShort) };
}

const callsOf = ({ holder, calls }: Visit): number => holder?.answered ?? calls;

const isLong = (visit: Visit | undefined): boolean => visit !== undefined && callsOf(visit) > maxCalls;

/** True for a session that its client has left after a call or two. */
const isShort = (visit: Visit): boolean =>
  callsOf(visit) > 0 && !isLong(visit) && (visit.holder === undefined || visit.holder.isLeft);

function isKnownName({ text }: Message): boolean {
  const name = valueAt(text, ['params', 'clientInfo', 'name']);
  return name !== undefined && knownNames.has(name.toString().slice(1, -1));
}
