// src/app/probes: sessions and pings of the gateway itself, to find out whether a server works.

import type { BackendEnd, OpenBackend } from '../../core/backend/backend.ts';
import { McpClient } from '../../core/backend/mcp-client.ts';
import { isResponse, type NoResponse } from '../../core/backend/own-requests.ts';
import { EarlyLines, stdoutPrefix, unfinishedPrefix } from '../../core/backend/stdio/pipes/early-lines.ts';
import { helpForText, helpIfEchoing, helpIfEnded, helpIfSilent } from '../../core/ops/health/start-help.ts';
import { entryOf } from '../../core/protocol/faults.ts';
import { parseBounded } from '../../core/protocol/json.ts';
import type { Message } from '../../core/protocol/message/message.ts';
import { revisionToRetry } from '../../core/protocol/modern/discovery.ts';
import type { Era } from '../../core/protocol/revisions.ts';
import { version } from '../version.ts';

/** The error of a request that the server answered with an error. */
export class RefusedError extends Error {
  readonly response: Message;

  constructor(message: string, response: Message) {
    super(message);
    this.response = response;
  }
}

interface ErrorAnswer {
  readonly data?: { readonly supported?: unknown } | null;
}

/** Limits for the versions that a message repeats: a server can name anything (P8). */
const maxVersions = 10;
const versionForm = /^[\w.-]{1,32}$/;

/** A sentence with the versions that a server names; empty if it names none. */
export function versionsIn(supported: unknown): string {
  const named: unknown[] = Array.isArray(supported) ? supported : [];
  const versions = named.filter((each) => typeof each === 'string' && versionForm.test(each)).slice(0, maxVersions);
  return versions.length === 0 ? '' : ` The server supports ${versions.join(', ')}.`;
}

/** Collects the first lines on a server's stdout that are not messages. */
export class StdoutNoise {
  readonly #noise = new EarlyLines();
  /** The first line; undefined if there is none. */
  first: string | undefined;

  /** Takes a line of the server that is no message. */
  note(line: Buffer): void {
    this.#noise.note(line);
    this.first ??= this.#noise.lines[0]?.slice(stdoutPrefix.length);
  }

  /** The lines with the prefix `stdout:`, followed by the last lines of the server's stderr. */
  with(lastOutput: readonly string[] = []): readonly string[] {
    // A local process that has sent no message reports these lines itself.
    return lastOutput.some((line) => line.startsWith(stdoutPrefix))
      ? lastOutput
      : [...this.#noise.lines, ...lastOutput];
  }
}

/** The members of an answer that matter. */
interface Answer {
  readonly result?: unknown;
  readonly error?: unknown;
}

/**
 * A longer answer is not built (P8): it would delay the clients of all servers. Sessions have the same limit for the answer
 * to `initialize`.
 */
const maxAnswerBytes = 1024 * 1024;

/** A session of the gateway itself with a server, to find out whether the server works. */
export class ProbeSession {
  readonly #client: McpClient;
  readonly #timeoutMs: number;
  readonly #era: Era;
  readonly #noise = new StdoutNoise();
  /** The newest one until the server has refused it. */
  #protocolVersion: string | undefined;

  /** @param timeoutMs how long the server has for each answer */
  constructor(open: OpenBackend, timeoutMs: number, era: Era = 'legacy') {
    this.#client = new McpClient(open, { version }, { onNoise: (line) => this.#noise.note(line) });
    this.#timeoutMs = timeoutMs;
    this.#era = era;
  }

  /** The first line on the server's stdout that is not an MCP message, truncated; undefined if there is none. */
  get noise(): string | undefined {
    return this.#noise.first;
  }

  /**
   * Sends a request and resolves with the result, an object. Rejects with a sentence for the operator after an error, a
   * timeout or the end of the server.
   * @param limitMs how long to wait, if it is less than the session's limit
   * @param maxBytes the longest answer that is read, 1 MiB by default
   */
  async request(
    method: string,
    params: Readonly<Record<string, unknown>>,
    limitMs = this.#timeoutMs,
    maxBytes = maxAnswerBytes,
  ): Promise<object> {
    const own = { version, protocolVersion: this.#protocolVersion };
    const answer = await this.#client.request(this.#era, method, params, limitMs, own);
    if (!isResponse(answer)) throw await this.#explain(answer, method, limitMs);
    const value = parseBounded(answer.text, maxBytes) as Answer | undefined;
    if (value === undefined) throw new Error(`The server answered ${method} with more than ${maxBytes} bytes.`);
    const { result, error } = value;
    if (error !== undefined) throw this.#explainRefusal(answer, method, error);
    if (typeof result === 'object' && result !== null && !Array.isArray(result)) return result;
    throw new Error(`The server answered ${method} with a result that is not an object.`);
  }

  notify(method: string): void {
    this.#client.notify(method);
  }

  /** Ends the session and the backend. */
  close(): Promise<void> {
    return this.#client.close({ isForGood: true });
  }

  #explainRefusal(response: Message, method: string, error: unknown): RefusedError {
    this.#protocolVersion = revisionToRetry(response) ?? this.#protocolVersion;
    const versions = versionsIn((error as ErrorAnswer | null)?.data?.supported);
    const sentence = `The server answered ${method} with ${errorText(error)}`;
    return new RefusedError(versions === '' ? sentence : `${sentence}.${versions}`, response);
  }

  async #explain(answer: NoResponse, method: string, limitMs: number): Promise<Error> {
    if (answer.kind === 'echo') return explainEcho();
    if (answer.kind === 'unanswered')
      return new Error(`The server did not answer ${method}. ${entryOf(answer.reason).message}`);
    if (answer.kind === 'ended' && answer.end !== undefined) return explainEnd(answer.end);
    // The last output of the server arrives with its end.
    await this.close();
    return explainSilence(method, limitMs, this.#noise.with(this.#client.end?.lastOutput));
  }
}

/** A longer message of an error is truncated. */
const maxErrorText = 1_000;

/** Describes the error of a server, which need not be the object that JSON-RPC requires. */
function errorText(error: unknown): string {
  const message = typeof error === 'object' && error !== null && 'message' in error ? error.message : undefined;
  return typeof message === 'string' ? `the error: ${message.slice(0, maxErrorText)}` : 'an error without a message.';
}

/** An error for the operator: the server cannot be used. */
export class ServerUnusableError extends Error {
  /** The remedy; empty where the message names it. */
  readonly help: string;
  /** The last lines that the server wrote outside the protocol. They can contain anything. */
  readonly output: readonly string[];
  /** The end of the backend, if it ended. */
  readonly end: BackendEnd | undefined;

  constructor(message: string, { help = '', output = [], end }: Partial<Omit<ServerUnusableError, keyof Error>> = {}) {
    super(message);
    this.help = help;
    this.output = output;
    this.end = end;
  }
}

/** The server neither does what a request asks nor refuses, so a client that waits learns nothing about its era. */
export class NoAnswerError extends ServerUnusableError {}

/** The error for the operator when no answer arrives in time. */
export function explainSilence(method: string, timeoutMs: number, output: readonly string[] = []): NoAnswerError {
  const silence = `The server did not answer ${method} within ${timeoutMs} ms.`;
  const isUnfinished = output.some((line) => line.startsWith(unfinishedPrefix));
  const written = output.flatMap((line) => {
    const prefix = [stdoutPrefix, unfinishedPrefix].find((each) => line.startsWith(each));
    return prefix === undefined ? [] : [line.slice(prefix.length)];
  });
  if (written.length === 0)
    return new NoAnswerError(`${silence} Check that it is an MCP server.`, { output, help: helpIfSilent });
  const text = isUnfinished ? 'text to stdout without a line end' : 'text to stdout that is not MCP';
  return new NoAnswerError(`${silence} The server wrote ${text}.`, {
    output,
    help: helpForText(written, isUnfinished),
  });
}

/** The error for the operator when the command sends back what it is told. */
export const explainEcho = (): NoAnswerError =>
  new NoAnswerError('The command sent back the own request of the gateway, instead of an answer.', {
    help: helpIfEchoing,
  });

/** The error for the operator when the server ended or could not be started. */
export function explainEnd(end: BackendEnd): ServerUnusableError {
  const { reason, detail, lastOutput: output = [] } = end;
  if (reason === 'failed') return new ServerUnusableError(detail, { end });
  return new ServerUnusableError(`No answer arrived. ${detail}`, { help: helpIfEnded(output), output, end });
}
