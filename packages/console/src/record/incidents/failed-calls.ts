import type { ConsoleHost, EndedCall } from '../../host.ts';
import { redactContent } from '../redacted-content.ts';
import { describeFailure } from './session-failures.ts';

/** How many failed calls are kept (P8): with contents, each has at most 8 KiB. */
const maxKept = 50;

/** How many of them are alike: a tool that fails again and again must not hide the others. */
const maxAlike = 10;

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

/** Keeps the last failed calls of all sessions of this instance. A call that succeeds costs nothing here. */
export class FailedCalls {
  readonly #host: Pick<ConsoleHost, 'redact'>;
  readonly #kept: FailedCallView[] = [];
  #newest = 0;

  constructor(host: Pick<ConsoleHost, 'redact'>) {
    this.#host = host;
  }

  /** Returns the kept calls after this number, oldest first. */
  after(number: number): readonly FailedCallView[] {
    return this.#kept.filter((call) => call.number > number);
  }

  /** Adds a call, if it has failed. */
  add({ origin, method, name, client, durationMs, args, answer, outcome }: EndedCall): void {
    if (outcome.kind === 'ok' || outcome.kind === 'left') return;
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
