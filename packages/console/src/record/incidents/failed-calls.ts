import type { CallOrigin, CallOutcome, ConsoleHost, EndedCall, FailedCall } from '../../host.ts';
import { LimitedMap } from '../limited-map.ts';
import { redactContent } from '../redacted-content.ts';
import { describeFailure } from './session-failures.ts';

/** How many failed calls are kept (P8): with contents, each has at most 8 KiB. */
const maxKept = 50;

/** How many of them are alike: a tool that fails again and again must not hide the others. */
const maxAlike = 10;

/** The end of a call that its session has reported follows within this time. */
const sameCallMs = 10_000;

/** A client chooses its methods, so the kinds of calls that are waited for are limited (P8). */
const maxReported = 1_000;

/** One failed call, with its request. */
export interface FailedCallView {
  /** Failed calls are numbered from 1. */
  readonly number: number;
  /** In milliseconds since 1970. */
  readonly at: number;
  readonly server: string;
  /** The short name of its session; undefined for a call without a session. */
  readonly session: string | undefined;
  /** The user; undefined without authentication, or if the sender is not known. */
  readonly user: string | undefined;
  /** The name and version that the client gave itself in the call; undefined for the client of a session. */
  readonly client: string | undefined;
  readonly method: string | undefined;
  /** The tool or prompt. */
  readonly name: string | undefined;
  /** How it failed: `the tool reported an error`. */
  readonly cause: string;
  /** The reason of the gateway, which has a page; undefined if the server answered. */
  readonly reason: string | undefined;
  readonly durationMs: number;
  /** The arguments, and the answer of the server, if the page may show contents. */
  readonly args: string | undefined;
  readonly answer: string | undefined;
}

/** What the events of a failed call have in common. */
type FailedRequest = Pick<EndedCall, 'origin' | 'method' | 'name' | 'client' | 'durationMs' | 'args' | 'answer'>;

/** Keeps the last failed calls of all sessions of this instance. A call that succeeds costs nothing here. */
export class FailedCalls {
  readonly #host: Pick<ConsoleHost, 'redact'>;
  readonly #now: () => number;
  readonly #kept: FailedCallView[] = [];
  /** The times at which sessions have reported calls whose ends are still to come, by server, method and reason. */
  readonly #reported = new LimitedMap<string, number[]>(maxReported);
  #newest = 0;

  /** @param now a monotonic clock, in milliseconds */
  constructor(host: Pick<ConsoleHost, 'redact'>, now: () => number = () => performance.now()) {
    this.#host = host;
    this.#now = now;
  }

  /** Returns the kept calls after this number, oldest first. */
  after(number: number): readonly FailedCallView[] {
    return this.#kept.filter((call) => call.number > number);
  }

  /** Adds a call, if it has failed. The end of one that its session has reported is not another call. */
  add(call: EndedCall): void {
    const { outcome, origin, method } = call;
    if (outcome.kind === 'ok' || outcome.kind === 'left') return;
    if (outcome.kind === 'fault' && origin.session === undefined && this.#isReported(origin, method, outcome.reason))
      return;
    this.#add(call, outcome);
  }

  /** Adds a call that its session has failed, and whose end is reported without its session. */
  addFault(call: FailedCall): void {
    const { origin, method, reason, isWholeAnswer } = call;
    if (!isWholeAnswer) return;
    const key = keyOf(origin, method, reason);
    const times = this.#reported.get(key) ?? [];
    this.#reported.set(key, [...times, this.#now()].slice(-maxKept));
    this.#add(call, { kind: 'fault', reason });
  }

  /** Forgets what waits for the end of a call at a server that is no longer configured. */
  forget(server: string): void {
    for (const key of this.#reported.keys()) if (key.startsWith(`${server} `)) this.#reported.delete(key);
  }

  #isReported(origin: CallOrigin, method: string | undefined, reason: string): boolean {
    const key = keyOf(origin, method, reason);
    const times = (this.#reported.get(key) ?? []).filter((at) => this.#now() - at < sameCallMs);
    const isReported = times.shift() !== undefined;
    if (times.length === 0) this.#reported.delete(key);
    else this.#reported.set(key, times);
    return isReported;
  }

  #add({ origin, method, name, client, durationMs, args, answer }: FailedRequest, outcome: CallOutcome): void {
    const { server, session, principal } = origin;
    const textOf = (bytes: Uint8Array | undefined) => bytes && redactContent(this.#host, bytes);
    this.#newest += 1;
    this.#kept.push({
      number: this.#newest,
      at: Date.now(),
      server,
      session,
      user: (principal as { readonly subject?: string } | undefined)?.subject || undefined,
      client,
      method,
      name,
      cause: describeFailure(outcome),
      reason: outcome.kind === 'fault' ? outcome.reason : undefined,
      durationMs: Math.round(durationMs),
      args: textOf(args?.text) ?? (args && `${args.bytes} bytes, which is too long to keep`),
      answer: textOf(answer),
    });
    this.#makeRoom(this.#kept.at(-1) as FailedCallView);
  }

  /** Removes the oldest call that is like the newest one if there are too many of them, or else the oldest one. */
  #makeRoom(newest: FailedCallView): void {
    const alike = this.#kept.filter((call) => isAlike(call, newest));
    if (alike.length > maxAlike) this.#kept.splice(this.#kept.indexOf(alike[0] as FailedCallView), 1);
    else if (this.#kept.length > maxKept) this.#kept.shift();
  }
}

const isAlike = (a: FailedCallView, b: FailedCallView): boolean =>
  a.server === b.server && a.method === b.method && a.name === b.name && a.cause === b.cause;

const keyOf = ({ server }: CallOrigin, method = '', reason: string): string => `${server} ${method} ${reason}`;
