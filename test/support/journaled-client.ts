import { setTimeout as delay } from 'node:timers/promises';
import { type CallOutcome, outcomesOf } from './call-faults.ts';
import { initialize, type Session, type SessionOptions } from './http-client.ts';
import { isResponse, type Listening, listen } from './resuming-client.ts';
import { markOf, type RecordedCall, type RecordedConnection, type SessionTranscript } from './transcript.ts';
import { withDeadline } from './wait-for.ts';

/** A call of a tool of `journal-server.mjs`. */
export interface JournaledCall {
  readonly tool: 'work' | 'hold' | 'ask';
  /** Arguments of the tool, beside its name in the journal. */
  readonly args?: { readonly ms?: number; readonly reports?: number };
  /** The time within which the call must end: an answer, an error, or a broken connection. */
  readonly deadlineMs: number;
  /** The addresses that the client uses in turn when its stream breaks; by default, that of the call. */
  readonly resumesAt?: readonly string[];
}

/** A call that is under way. */
export interface OpenCall {
  /** The name of the call in the journal. */
  readonly mark: string;
  /** The connection that the call was posted on. */
  readonly posted: Listening;
  /** Resolves when the call has ended or its deadline has passed; see `CallOutcome`. */
  readonly outcome: Promise<CallOutcome>;
}

/** A client whose calls and answers are recorded, to be compared with the journal of its server. */
export interface JournaledClient {
  readonly session: Session;
  readonly transcript: SessionTranscript;
  /** Posts a call to an instance, and follows it to its end as a good client does. */
  call(url: string, call: JournaledCall): OpenCall;
}

const longestPauseMs = 50;

/** Opens a session at `url`, the instance that will own it. The name has no blanks and is unique. */
export async function openJournaled(url: string, name: string, options?: SessionOptions): Promise<JournaledClient> {
  const session = await initialize(url, options);
  const headers = { 'Mcp-Session-Id': session.id, 'MCP-Protocol-Version': session.version };
  const calls: RecordedCall[] = [];
  const connections: RecordedConnection[] = [];
  const transcript: SessionTranscript = { name, sessionId: session.id, calls, connections, isEnded: false };
  const record = (listening: Listening, call: string): Listening => {
    connections.push(Object.assign(listening.listened, { call }));
    return listening;
  };
  return {
    session,
    transcript,
    call(at, { tool, args = {}, deadlineMs, resumesAt = [at] }) {
      const id = `${name}-${calls.length}`;
      const mark = markOf(name, id);
      const startedAt = performance.now();
      const call = { id, mark, isOnce: true, isGivenUp: false, startedAt, endedAt: undefined as number | undefined };
      calls.push(Object.assign(call, { deadlineMs }));
      const params = { name: tool, arguments: { ...args, call: mark }, _meta: { progressToken: id, mark } };
      const posted = record(listen(at, { headers, body: { jsonrpc: '2.0', id, method: 'tools/call', params } }), id);
      const follow = async (): Promise<CallOutcome> => {
        let after: string | undefined;
        for (let turn = 0, now = posted; ; turn++) {
          const leftMs = startedAt + deadlineMs - performance.now();
          const isOver = await withDeadline(now.ended, { deadlineMs: Math.max(0, leftMs) }).then(
            () => true,
            () => false,
          );
          if (!isOver) {
            now.drop();
            await now.ended;
            break;
          }
          const { status, events } = now.listened;
          after = events.findLast((event) => event.id !== undefined)?.id ?? after;
          if (after === undefined || events.some(isResponse) || status === 404 || status === 204) {
            call.endedAt = performance.now();
            break;
          }
          await delay(Math.random() * longestPauseMs);
          const next = resumesAt[turn % resumesAt.length] ?? at;
          now = record(listen(next, { headers, after }), id);
        }
        return outcomesOf(transcript).get(id) as CallOutcome;
      };
      return { mark, posted, outcome: follow() };
    },
  };
}
