import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { type Gateway, root, startGateway } from '../support/gateway.ts';
import type { Exchange, Message, Session } from '../support/http-client.ts';
import { type Waiting, waitFor } from '../support/wait-for.ts';

/** What `moody-server.mjs` is told on its command line; see there. */
export interface Mood {
  readonly capabilities?: object;
  readonly version?: string;
  readonly tools?: readonly object[];
  readonly startMs?: number;
  readonly dies?: number;
  readonly deaf?: boolean;
  readonly floods?: number;
  readonly nested?: number;
  readonly later?: Mood;
}

/** A line that a process of the server was told; `start` stands for its own start. */
interface Note {
  readonly pid: number;
  readonly line: string;
}

export interface Moody {
  readonly gateway: Gateway;
  readonly folder: string;
  /** What each process of the server was told, oldest process first, in order. */
  told(): Message[][];
  /** Resolves when a process, counted from 0, was told so many messages. */
  toldBy(run: number, count: number, waiting?: Waiting): Promise<Message[]>;
  /** The pids of the processes, oldest first. */
  pids(): number[];
  /** Ends the newest process. */
  kill(signal?: NodeJS.Signals): void;
}

/** So that what does not end by itself is ended soon. */
export const shortGrace = ['--timeouts.grace', '600ms'] as const;

export interface MoodyOptions {
  readonly args?: readonly string[];
  /** The words before the server's own argument; default: Node.js and the server's file. */
  readonly command?: readonly string[];
  readonly folder?: string;
}

/** A directory that goes with the test. */
export function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'gangway-fault-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export const moodyFile = `${root}test/fixtures/children/moody-server.mjs`;

/** Starts a gateway in front of `moody-server.mjs`. Its notes are those of all sessions: use one session with them. */
export async function startMoody(
  mood: Mood = {},
  { args = [], command = [process.execPath, moodyFile], folder = makeFolder() }: MoodyOptions = {},
): Promise<Moody> {
  const notes = join(folder, 'notes');
  writeFileSync(notes, '');
  const gateway = await startGateway({
    // Without the process that the gateway begins with, the first one that notes something is the session's.
    args: [...shortGrace, ...args],
    command: [...command, JSON.stringify({ notes, ...mood })],
  });

  const byProcess = (): Map<number, Message[]> => {
    const runs = new Map<number, Message[]>();
    const text = readFileSync(notes, 'utf8');
    for (const line of text
      .slice(0, text.lastIndexOf('\n') + 1)
      .split('\n')
      .filter((l) => l !== '')) {
      const noted = JSON.parse(line) as Note;
      if (noted.line === 'start') runs.set(noted.pid, []);
      else runs.get(noted.pid)?.push(JSON.parse(noted.line));
    }
    return runs;
  };
  const told = (): Message[][] => [...byProcess().values()];
  return {
    gateway,
    folder,
    told,
    pids: () => [...byProcess().keys()],
    toldBy: (run, count, waiting = {}) =>
      waitFor(
        () => {
          const messages = told()[run];
          return messages !== undefined && messages.length >= count ? messages : undefined;
        },
        { what: `process ${run} to be told ${count} messages`, ...waiting },
      ),
    kill(signal = 'SIGKILL') {
      process.kill([...byProcess().keys()].at(-1) as number, signal);
    },
  };
}

/** A request as JSON; `_meta` is what the moody server looks at. */
export const requestOf = (id: string | number, method: string, params: object = {}, _meta?: object): object => ({
  jsonrpc: '2.0',
  id,
  method,
  params: { ...params, ...(_meta && { _meta }) },
});

export const toolCall = (id: string | number, name: string, args: object = {}, _meta?: object): object =>
  requestOf(id, 'tools/call', { name, arguments: args }, _meta);

/** A request that the first `hangsUntil` processes never answer. */
export const hanging = { hangsUntil: 99 } as const;

/** Resolves with the response to a request, from an answer of either kind. */
export async function responseOf(exchange: Exchange | Promise<Exchange>, id: string | number): Promise<Message> {
  const { messages } = await (await exchange).answer({ deadlineMs: 10_000 });
  const responses = messages.filter((message) => message.id === id && message.method === undefined);
  if (responses.length !== 1) throw new Error(`${responses.length} responses to ${id}: ${JSON.stringify(messages)}`);
  return responses[0];
}

/** Resolves when the gateway has logged a line with this text so often. */
export const logged = (gateway: Gateway, msg: string, count = 1, waiting: Waiting = {}): Promise<object[]> =>
  waitFor(
    () => {
      const lines = gateway.logs().filter((line) => line['msg'] === msg);
      return lines.length >= count ? lines : undefined;
    },
    { what: `${count} times "${msg}" in the log`, ...waiting },
  );

export const restored = (gateway: Gateway, count = 1, waiting: Waiting = {}): Promise<object[]> =>
  logged(gateway, 'server restored', count, waiting);

/** The statuses of a POST, a GET and a POST again in a session that may be gone. */
export async function statusOf(session: Session): Promise<number> {
  return (await session.request('ping')).status;
}
