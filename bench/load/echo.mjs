// Echo calls. Every answer is checked: its id, its tag, and each byte of its payload.
import { closeSessions, openSessions } from './client-sessions.mjs';
import { runClosedLoop } from './closed-loop.mjs';
import { createPayload } from './payloads.mjs';

export async function echo(job) {
  const payload = createPayload(job.payload, job.bytes);
  const sessions = await openSessions(job.port, job.sessions);
  const result = await runClosedLoop(job, (tally) =>
    sessions.flatMap((session, index) =>
      Array.from({ length: job.inflight }, (_, slot) => createSlot(session, `s${index}.${slot}`, payload, tally)),
    ),
  );
  return { ...result, notClosed: await closeSessions(sessions) };
}

let nextId = 1;

function createSlot(session, name, payload, tally) {
  const connection = session.connect();
  return (done) => {
    const id = nextId++;
    const tag = `${name}.${id}:`;
    const sentAt = performance.now();
    let answers = 0;
    session.post(connection, [requestHead(id, tag), payload.after], {
      onMessage(text) {
        answers += 1;
        const fault = faultOf(text, id, tag, payload);
        if (fault === undefined) tally.answered(performance.now() - sentAt);
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

const requestHead = (id, tag) =>
  `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"echo","arguments":{"text":"${tag}`;

/** What is wrong with an answer. Its id can stand at either end. */
function faultOf(text, id, tag, { expected, marker }) {
  const ends = text.length > 400 ? `${text.slice(0, 200)}\n${text.slice(-200)}` : text;
  if (!new RegExp(`"id":${id}[,}]`).test(ends)) return 'an answer to another request';
  if (!ends.includes(`"text":"${tag}`)) return ends.includes('"error"') ? `an error: ${ends}` : 'wrong tag';
  const mark = marker(tag);
  return text.startsWith(expected, text.indexOf(mark) + mark.length) ? undefined : 'wrong content';
}
