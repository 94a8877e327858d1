import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { RequestId } from '../../src/core/protocol/faults.ts';
import { root } from '../support/gateway.ts';
import { initialize, type Session } from '../support/http-client.ts';
import { isResponse, type Listening, listen } from '../support/resuming-client.ts';
import { executionsIn } from '../support/traffic.ts';
import { markOf, type RecordedCall, type RecordedConnection, type SessionTranscript } from '../support/transcript.ts';
import { waitFor } from '../support/wait-for.ts';

/** What servers note, in a file that all processes share. */
export interface Notes {
  /** The command of the server in `held-server.mjs`. */
  readonly command: readonly string[];
  /** The marks of the calls that were begun, each as often as it was. */
  executions(): Promise<readonly string[]>;
  remove(): Promise<void>;
}

export async function createNotes(): Promise<Notes> {
  const folder = await mkdtemp(join(tmpdir(), 'gangway-held-'));
  const file = join(folder, 'notes');
  await writeFile(file, '');
  return {
    command: [process.execPath, `${root}test/cluster/held-server.mjs`, file],
    executions: () => executionsIn(file),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** What a call is to be. */
export interface HeldCall {
  readonly method: string;
  /** How often the server reports progress before it holds the call. */
  readonly reports: number;
  /** Which of several calls of the client it is: 0. */
  readonly n?: number;
}

/** A client with a call that its server holds, or several; everything that it sees is recorded. */
export interface HeldClient {
  readonly session: Session;
  readonly transcript: SessionTranscript;
  /** Of its first call. */
  readonly mark: string;
  /** Posts a call to an instance, and resolves when the server runs it and all that it reports has come. */
  call(url: string, call: HeldCall): Promise<Listening>;
  /** Resumes a call's stream (the first one's) at an instance, from the last event id it had unless another one is given. */
  resume(url: string, after?: string, n?: number): Listening;
  /** Resumes the streams of all calls. */
  resumeAll(url: string): readonly Listening[];
  /** Opens the GET stream, or resumes it. */
  listen(url: string, after?: string): Listening;
  /** The newest event id of the first call's stream. */
  readonly lastEventId: string | undefined;
  /** Lets the server answer its first call, by way of an instance. */
  release(url: string): Promise<number>;
  /** Lets the server answer all of its calls. */
  releaseAll(url: string): Promise<void>;
  /** A ping by way of an instance; resolves with the status. */
  ping(url: string): Promise<number>;
  /** Ends the recording of the calls. */
  end(): void;
}

/** Opens a session at `url`, the instance that is to own it. */
export async function openHeld(url: string, name: string, notes: Notes, version?: string): Promise<HeldClient> {
  const session = await initialize(url, version === undefined ? {} : { version });
  const headers = { 'Mcp-Session-Id': session.id, 'MCP-Protocol-Version': session.version };
  const idOf = (n: number): string => (n === 0 ? `${name}-call` : `${name}-call-${n}`);
  const [id, mark] = [idOf(0), markOf(name, idOf(0))];
  const calls: Writable<RecordedCall>[] = [];
  const connections: RecordedConnection[] = [];
  const transcript: SessionTranscript = { name, sessionId: session.id, calls, connections, isEnded: false };
  let asked = 0;
  const record = (listening: Listening, call: string | undefined): Listening => {
    connections.push(Object.assign(listening.listened, { call }));
    return listening;
  };
  const ask = async (at: string, method: string, params: object): Promise<number> => {
    const ownId = `${name}-ask-${++asked}`;
    const body = { jsonrpc: '2.0', id: ownId, method, params };
    return (await listen(at, { headers, body }).ended).status;
  };
  const lastIdOf = (call: RequestId): string | undefined =>
    connections
      .filter((connection) => connection.call === call)
      .flatMap(({ events }) => events)
      .findLast((event) => event.id !== undefined)?.id;
  const resume = (at: string, call: string, after = lastIdOf(call)): Listening =>
    record(listen(at, { headers, after }), call);
  return {
    session,
    transcript,
    mark,
    async call(at, { method, reports, n = 0 }) {
      const own = { id: idOf(n), mark: markOf(name, idOf(n)) };
      const isOnce = method === 'tools/call';
      calls.push({ ...own, isOnce, isGivenUp: false, startedAt: performance.now(), endedAt: undefined });
      const params = { name: 'hold', uri: 'held:it', _meta: { progressToken: own.id, mark: own.mark, reports } };
      const listening = record(listen(at, { headers, body: { jsonrpc: '2.0', id: own.id, method, params } }), own.id);
      const what = `the call of ${name} to be held`;
      const count = (): number => listening.listened.events.filter(({ data }) => data).length;
      const isHeld = async () => count() === reports && (await notes.executions()).includes(own.mark);
      await waitFor(async () => listening.listened.isWhole || (await isHeld()), { what, deadlineMs: 30_000 });
      if (listening.listened.isWhole) throw new Error(`${name} was not held: ${listening.listened.text}`);
      return listening;
    },
    resume: (at, after, n = 0) => resume(at, idOf(n), after),
    resumeAll: (at) => calls.map((call) => resume(at, String(call.id))),
    listen: (at, after) => record(listen(at, { headers, after }), undefined),
    get lastEventId() {
      return lastIdOf(id);
    },
    release: (at) => ask(at, 'test/release', { mark }),
    async releaseAll(at) {
      for (const call of calls) await ask(at, 'test/release', { mark: call.mark });
    },
    ping: (at) => ask(at, 'ping', {}),
    end() {
      for (const call of calls) call.endedAt = performance.now();
    },
  };
}

/** Resolves when a connection has brought the answer, or has ended; with when that was. */
export async function answerOn({ ended, events }: Listening): Promise<number> {
  const answered = events.next(isResponse, { deadlineMs: 60_000, what: 'the answer' }).catch(() => undefined);
  await Promise.race([answered, ended]);
  return performance.now();
}
