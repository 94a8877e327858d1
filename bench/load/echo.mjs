// Echo calls. Every answer is checked: its id, its tag, and each byte of its payload.
import { statelessVersion } from '../lib/mcp-session.mjs';
import { closeSessions, openSessions, statelessClients } from './client-sessions.mjs';
import { runClosedLoop } from './closed-loop.mjs';
import { createPayload } from './payloads.mjs';

export async function echo(job) {
  const payload = createPayload(job.payload, job.bytes);
  const isModern = job.era === 'modern';
  const { port, token } = job;
  const sessions = isModern ? statelessClients(port, job.sessions) : await openSessions(port, job.sessions, { token });
  const params = isModern ? `${envelopeOf(job.declares)},` : '';
  const result = await runClosedLoop(job, (tally) =>
    sessions.flatMap((session, index) =>
      Array.from({ length: job.inflight }, (_, slot) =>
        createSlot(session, { name: `s${index}.${slot}`, payload, params, tally }),
      ),
    ),
  );
  return { ...result, notClosed: isModern ? 0 : await closeSessions(sessions) };
}

let nextId = 1;

/** What each request of a client without a session says of itself. */
const envelopeOf = (capabilities = {}) =>
  `"_meta":${JSON.stringify({
    'io.modelcontextprotocol/protocolVersion': statelessVersion,
    'io.modelcontextprotocol/clientCapabilities': capabilities,
  })}`;

function createSlot(session, { name, payload, params, tally }) {
  const connection = session.connect();
  return (done) => {
    const id = nextId++;
    const tag = `${name}.${id}:`;
    const sentAt = performance.now();
    let answers = 0;
    session.post(connection, [requestHead(id, tag, params), payload.after], {
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

const requestHead = (id, tag, params) =>
  `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{${params}"name":"echo","arguments":{"text":"${tag}`;

/** What is wrong with an answer. Its id can stand at either end. */
function faultOf(text, id, tag, { expected, marker }) {
  const ends = text.length > 400 ? `${text.slice(0, 200)}\n${text.slice(-200)}` : text;
  if (!new RegExp(`"id":${id}[,}]`).test(ends)) return 'an answer to another request';
  if (!ends.includes(`"text":"${tag}`)) return ends.includes('"error"') ? `an error: ${ends}` : 'wrong tag';
  const mark = marker(tag);
  return text.startsWith(expected, text.indexOf(mark) + mark.length) ? undefined : 'wrong content';
}
