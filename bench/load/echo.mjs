// Echo calls. Every answer is checked: its id, its tag, and each byte of its payload. `inflight` calls of each session at all times; or, with
// `callers`, so many of all of them, each of the next session.
import { envelopeOf } from '../lib/mcp-session.mjs';
import { openClients } from './client-sessions.mjs';
import { runClosedLoop } from './closed-loop.mjs';
import { createPayload } from './payloads.mjs';

export async function echo(job) {
  const { makeSlots, close } = await openEcho(job);
  return { ...(await runClosedLoop(job, makeSlots)), notClosed: await close() };
}

/**
 * The clients of a job. `makeSlots(tally)` returns new slots, which tell that tally; `close` ends the sessions, and says how many
 * could not be ended.
 */
export async function openEcho(job) {
  const payload = createPayload(job.payload, job.bytes);
  const { sessions, close } = await openClients(job, 'echo', job.listens && (() => undefined));
  const params = job.era === 'modern' ? `"_meta":{${envelopeOf(job.declares)}},` : '';
  let turn = 0;
  const anySession = () => sessions[turn++ % sessions.length];
  const callers = job.callers ?? sessions.length * job.inflight;
  const makeSlots = (tally) =>
    Array.from({ length: callers }, (_, slot) => {
      const session = sessions[slot % sessions.length];
      const next = job.callers === undefined ? () => session : anySession;
      return createSlot(next, { name: `s${slot}`, payload, params, tally });
    });
  return { makeSlots, close };
}

let nextId = 1;

/**
 * Makes a slot, which makes one call at a time: `slot(done, dueAt)` calls `done` when the call is over. The latency counts from `dueAt`
 * (by default now).
 */
function createSlot(nextSession, { name, payload, params, tally }) {
  const connection = nextSession().connect();
  return (done, dueAt = performance.now()) => {
    const id = nextId++;
    const tag = `${name}.${id}:`;
    let answers = 0;
    nextSession().post(connection, [requestHead(id, tag, params), payload.after], {
      onMessage(text) {
        answers += 1;
        const fault = faultOf(text, id, tag, payload);
        if (fault === undefined) tally.answered(performance.now() - dueAt);
        else tally.fault(fault);
      },
      onDone(error, status, text) {
        if (error !== undefined || status >= 300) tally.fault(error?.message ?? `HTTP ${status} ${text}`);
        else if (answers !== 1) tally.fault(`${answers} answers`);
        done();
      },
    });
  };
}

/** The text of an echo call up to its payload. */
export const requestHead = (id, tag, params) =>
  `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{${params}"name":"echo","arguments":{"text":"${tag}`;

/** What is wrong with an answer. Its id can stand at either end. */
export function faultOf(text, id, tag, { expected, marker }) {
  const ends = text.length > 400 ? `${text.slice(0, 200)}\n${text.slice(-200)}` : text;
  if (!new RegExp(`"id":${id}[,}]`).test(ends)) return 'an answer to another request';
  if (!ends.includes(`"text":"${tag}`)) return ends.includes('"error"') ? `an error: ${ends}` : 'wrong tag';
  const mark = marker(tag);
  return text.startsWith(expected, text.indexOf(mark) + mark.length) ? undefined : 'wrong content';
}
