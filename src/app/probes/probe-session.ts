// src/app/probes: sessions and pings of the gateway itself, to find out whether a server works.

import type { Backend, BackendEnd, OpenBackend } from '../../backend/backend.ts';
import { EarlyLines, stdoutPrefix, unfinishedPrefix } from '../../backend/stdio/pipes/early-lines.ts';
import { helpForText, helpIfEchoing, helpIfEnded, helpIfSilent } from '../../ops/health/start-help.ts';
import { entryOf, type RequestId } from '../../protocol/faults.ts';
import { parseBounded } from '../../protocol/json/scalar.ts';
import { createMessage, type Message, responsesIn } from '../../protocol/message/message.ts';
import { revisionToRetry } from '../../protocol/modern/discovery.ts';
import { ownRequest } from '../../protocol/modern/envelope.ts';
import type { Era } from '../../protocol/revisions.ts';
import { detach } from '../../util/boundary.ts';
import { TimeLimit } from '../../util/timing/time-limit.ts';
import { version } from '../version.ts';

/** A session of the gateway itself with a server, to find out whether the server works. */
export interface ProbeSession {
  /**
   * Sends a request and resolves with the result, an object. Rejects with a sentence for the operator after an error, a
   * timeout or the end of the server.
   * @param limitMs how long to wait, if it is less than the session's limit
   * @param maxBytes the longest answer that is read, 1 MiB by default
   */
  request(method: string, params: object, limitMs?: number, maxBytes?: number): Promise<object>;
  notify(method: string): void;
  /** The first line on the server's stdout that is not an MCP message, truncated; undefined if there is none. */
  readonly noise: string | undefined;
  /** Ends the session and the backend. */
  close(): Promise<void>;
}

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

/** A request without an answer so far. */
interface PendingRequest {
  readonly method: string;
  readonly maxBytes: number;
  resolve(result: object): void;
  reject(error: Error): void;
}

/**
 * A longer answer is not built (P8): it would delay the clients of all servers. Sessions have the same limit for the answer
 * to `initialize`.
 */
const maxAnswerBytes = 1024 * 1024;

/**
 * Opens a backend and a minimal client on it: one request at a time, and everything else from the server is ignored. In
 * the modern era each request has its envelope.
 */
export function openProbeSession(open: OpenBackend, timeoutMs: number, era: Era = 'legacy'): ProbeSession {
  let waiting: PendingRequest | undefined;
  let lastId = 0;
  let end: BackendEnd | undefined;
  let isSilent = false;
  const noise = new StdoutNoise();
  /** The newest one until the server has refused it. */
  let protocolVersion: string | undefined;

  const settle = (response: Message): void => {
    if (response.id !== lastId || waiting === undefined) return;
    const value = parseBounded(response.text, waiting.maxBytes) as Answer | undefined;
    if (value === undefined)
      return waiting.reject(
        new Error(`The server answered ${waiting.method} with more than ${waiting.maxBytes} bytes.`),
      );
    const { result, error } = value;
    if (error === undefined) {
      if (typeof result === 'object' && result !== null && !Array.isArray(result)) return waiting.resolve(result);
      return waiting.reject(new Error(`The server answered ${waiting.method} with a result that is not an object.`));
    }
    protocolVersion = revisionToRetry(response) ?? protocolVersion;
    const versions = versionsIn((error as ErrorAnswer | null)?.data?.supported);
    const sentence = `The server answered ${waiting.method} with ${errorText(error)}`;
    waiting.reject(new RefusedError(versions === '' ? sentence : `${sentence}.${versions}`, response));
  };

  const createRequest = (method: string, params: object): Message => {
    if (era === 'legacy') return createMessage({ id: lastId, method, params });
    return ownRequest(lastId, method, { ...params }, { version, protocolVersion });
  };

  const backend: Backend = open({
    onMessages(messages) {
      responsesIn(messages).forEach(settle);
      for (const message of messages) {
        if (message.kind !== 'request') continue;
        if (isEcho(message, lastId, waiting?.method)) waiting?.reject(explainEcho());
        else backend.send(answerOf(message));
      }
    },
    onNoise: (line) => noise.note(line),
    onUnanswered(_, reason) {
      waiting?.reject(new Error(`The server did not answer ${waiting.method}. ${entryOf(reason).message}`));
    },
    onEnd(ended) {
      end = ended;
      if (!isSilent) waiting?.reject(explainEnd(ended));
    },
  });

  return {
    async request(method, params, limitMs = timeoutMs, maxBytes = maxAnswerBytes) {
      lastId += 1;
      let limit: TimeLimit | undefined;
      try {
        return await new Promise((resolve, reject) => {
          waiting = { method, maxBytes, resolve, reject };
          // The last output of the server arrives with its end, so the backend is closed first.
          limit = new TimeLimit(() => {
            isSilent = true;
            const closed = backend.close({ isForGood: true });
            const fail = (): void => reject(explainSilence(method, limitMs, noise.with(end?.lastOutput)));
            detach('background', closed.finally(fail));
          }, limitMs);
          if (end !== undefined) reject(explainEnd(end));
          backend.send(createRequest(method, params));
        });
      } finally {
        limit?.clear();
        waiting = undefined;
      }
    },
    get noise() {
      return noise.first;
    },
    notify(method) {
      backend.send(createMessage({ method }));
    },
    close: () => backend.close({ isForGood: true }),
  };
}

/** True for the gateway's own request, sent back. */
export const isEcho = ({ kind, id, method }: Message, ownId: RequestId, ownMethod: string | undefined): boolean =>
  kind === 'request' && id === ownId && method === ownMethod;

/** The answer of a client without capabilities. Some servers wait for the answer to `ping` before they go on. */
export function answerOf({ id, method }: Message): Message {
  if (method === 'ping') return createMessage({ id, result: {} });
  return createMessage({ id, error: { code: -32601, message: 'Method not found' } });
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
