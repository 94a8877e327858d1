import type { Backend, BackendEnd, OpenBackend } from '../../backend/backend.ts';
import { helpIfEnded, helpIfSilent } from '../../ops/health/start-help.ts';
import { entryOf } from '../../protocol/faults.ts';
import { type Message, readOne, readResponse } from '../../protocol/message/message.ts';
import { readDiscovery } from '../../protocol/modern/discovery.ts';
import { ownRequest } from '../../protocol/modern/envelope.ts';
import { type Era, legacyRevisions, modernRevisions } from '../../protocol/revisions.ts';
import { version } from '../version.ts';

/** What the gateway says to a server by itself, to see whether it works. */
export interface ProbeSession {
  /** The result, an object; rejects with a sentence for the operator if there is an error, no answer in time, or the server ends. */
  request(method: string, params: object): Promise<object>;
  notify(method: string): void;
  /** The first lines that the server wrote to stdout and that are no MCP messages, cut. */
  readonly noise: readonly string[];
  /** Ends the session and the backend. */
  close(): Promise<void>;
}

/** What a server says of itself. Nothing of it is checked: any value may stand anywhere. */
export interface InitializeResult {
  readonly protocolVersion?: unknown;
  readonly capabilities?: unknown;
  readonly serverInfo?: unknown;
}

/** Opens a session as a client does. */
export async function initialize(trial: ProbeSession): Promise<InitializeResult> {
  const result = (await trial.request('initialize', {
    protocolVersion: legacyRevisions.at(-1),
    capabilities: {},
    clientInfo: { name: 'mcp-gangway check', version },
  })) as InitializeResult;
  trial.notify('notifications/initialized');
  return result;
}

/** What a server of the modern era says of itself. */
export interface DiscoverResult {
  readonly supportedVersions?: unknown;
  readonly capabilities?: unknown;
  readonly _meta?: { readonly 'io.modelcontextprotocol/serverInfo'?: unknown } | null;
}

/**
 * Asks a server of the modern era what it is. One that refuses the version of the question and names it all the same is
 * asked once more (2026-07-28, basic/versioning). Rejects if it serves no revision that the gateway knows.
 */
export async function discover(trial: ProbeSession): Promise<DiscoverResult> {
  const ask = (): Promise<DiscoverResult> => trial.request('server/discover', {}) as Promise<DiscoverResult>;
  const result = await ask().catch((error: Error) => {
    const discovery = error instanceof Refused ? readDiscovery(error.response) : undefined;
    if (discovery?.era !== 'modern') throw error;
    return discovery.revisions.length > 0 ? ask() : { supportedVersions: discovery.supported };
  });
  if (servedRevisions(result).length > 0) return result;
  const versions = versionsIn(result.supportedVersions);
  throw new Error(
    `The server supports no modern revision that this gateway supports (${modernRevisions.join(', ')}).${versions}`,
  );
}

/** The server answered with an error. */
class Refused extends Error {
  readonly response: Message;

  constructor(message: string, response: Message) {
    super(message);
    this.response = response;
  }
}

interface ErrorAnswer {
  readonly data?: { readonly supported?: unknown } | null;
}

/** A server could name anything (P8). */
const maxVersions = 10;
const versionForm = /^[\w.-]{1,32}$/;

/** Says which versions a server names; empty if it names none. */
function versionsIn(supported: unknown): string {
  const named: unknown[] = Array.isArray(supported) ? supported : [];
  const versions = named.filter((each) => typeof each === 'string' && versionForm.test(each)).slice(0, maxVersions);
  return versions.length === 0 ? '' : ` The server supports ${versions.join(', ')}.`;
}

/** The revisions of the modern era that both the server and the gateway serve. */
export const servedRevisions = ({ supportedVersions }: DiscoverResult): readonly string[] =>
  Array.isArray(supportedVersions)
    ? modernRevisions.filter((revision) => (supportedVersions as readonly unknown[]).includes(revision))
    : [];

/** So much of the noise is kept: enough to recognize a menu, a prompt or a log. */
const maxNoiseLines = 5;
const maxNoiseBytes = 200;

/** The first lines of a server's stdout that are no messages. */
export class StdoutNoise {
  readonly lines: string[] = [];

  /** Takes any line of the server. */
  note(line: Buffer): void {
    if (this.lines.length < maxNoiseLines && readOne(line) === undefined) {
      this.lines.push(line.subarray(0, maxNoiseBytes).toString());
    }
  }

  /** The same lines, named as what they are, and the last lines of the server's stderr. */
  with(lastOutput: readonly string[] = []): readonly string[] {
    return [...this.lines.map((line) => `stdout: ${line}`), ...lastOutput];
  }
}

interface Waiting {
  readonly method: string;
  resolve(result: object): void;
  reject(error: Error): void;
}

/**
 * The few lines of a client that a trial needs: one request at a time, everything else the server says is ignored. In the
 * modern era each request has its envelope.
 */
export function openProbeSession(open: OpenBackend, timeoutMs: number, era: Era = 'legacy'): ProbeSession {
  let waiting: Waiting | undefined;
  let lastId = 0;
  let end: BackendEnd | undefined;
  let isSilent = false;
  const noise = new StdoutNoise();

  const settle = (line: Buffer): void => {
    noise.note(line);
    const response = readResponse(line);
    if (response === undefined || response.id !== lastId || waiting === undefined) return;
    const { result, error } = JSON.parse(response.text.toString()) as { result?: unknown; error?: unknown };
    if (error === undefined) {
      if (typeof result === 'object' && result !== null && !Array.isArray(result)) return waiting.resolve(result);
      return waiting.reject(new Error(`The server answered ${waiting.method} with a result that is not an object.`));
    }
    const versions = versionsIn((error as ErrorAnswer | null)?.data?.supported);
    const sentence = `The server answered ${waiting.method} with ${errorText(error)}`;
    waiting.reject(new Refused(versions === '' ? sentence : `${sentence}.${versions}`, response));
  };

  const textOf = (method: string, params: object): Buffer => {
    if (era === 'legacy') return Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: lastId, method, params }));
    const [protocolVersion] = modernRevisions.slice(-1) as [string];
    return ownRequest(lastId, method, { ...params }, { version, protocolVersion });
  };

  const backend: Backend = open({
    onMessages: (lines) => lines.forEach(settle),
    onUnanswered(_, reason) {
      waiting?.reject(new Error(`The server did not answer ${waiting.method}. ${entryOf(reason).message}`));
    },
    onEnd(told) {
      end = told;
      if (!isSilent) waiting?.reject(explainEnd(told));
    },
  });

  return {
    async request(method, params) {
      lastId += 1;
      let timer: NodeJS.Timeout | undefined;
      try {
        return await new Promise((resolve, reject) => {
          waiting = { method, resolve, reject };
          // What it has written is told with its end.
          timer = setTimeout(async () => {
            isSilent = true;
            await backend.close({ isForGood: true });
            reject(explainSilence(method, timeoutMs, noise.with(end?.lastOutput)));
          }, timeoutMs);
          if (end !== undefined) reject(explainEnd(end));
          backend.send(textOf(method, params));
        });
      } finally {
        clearTimeout(timer);
        waiting = undefined;
      }
    },
    noise: noise.lines,
    notify(method) {
      backend.send(Buffer.from(JSON.stringify({ jsonrpc: '2.0', method })));
    },
    close: () => backend.close({ isForGood: true }),
  };
}

/** So much of an error's message is told. */
const maxErrorText = 1_000;

/** What a server gave as its error, which need not be the object that JSON-RPC asks for. */
function errorText(error: unknown): string {
  const message = typeof error === 'object' && error !== null && 'message' in error ? error.message : undefined;
  return typeof message === 'string' ? `the error: ${message.slice(0, maxErrorText)}` : 'an error without a message.';
}

/** A server that is of no use, for the operator. */
export class ServerUnusableError extends Error {
  /** What to do about it; empty where the message says so. */
  readonly help: string;
  /** The last lines that the server wrote beside the protocol: they can hold anything. */
  readonly output: readonly string[];
  /** How its backend ended, if it did. */
  readonly end: BackendEnd | undefined;

  constructor(message: string, { help = '', output = [], end }: Partial<Omit<ServerUnusableError, keyof Error>> = {}) {
    super(message);
    this.help = help;
    this.output = output;
    this.end = end;
  }
}

/** The server neither does what it was asked for nor refuses: who waits for that learns nothing of its era. */
export class NoAnswerError extends ServerUnusableError {}

/** For the operator: nothing came in time. */
export const explainSilence = (method: string, timeoutMs: number, output: readonly string[] = []): NoAnswerError =>
  new NoAnswerError(`The server did not answer ${method} within ${timeoutMs} ms. Check that it is an MCP server.`, {
    output,
    help: helpIfSilent,
  });

/** For the operator: the server is no more, or never was. */
export function explainEnd(end: BackendEnd): ServerUnusableError {
  const { reason, detail, lastOutput: output = [] } = end;
  if (reason === 'failed') return new ServerUnusableError(detail, { end });
  return new ServerUnusableError(`No answer arrived. ${detail}`, { help: helpIfEnded, output, end });
}
