// Calls that bring many progress events. Each event must come once, in order, with the answer of its own call.
import { envelopeOf } from '../lib/mcp-session.mjs';
import { openClients } from './client-sessions.mjs';
import { runClosedLoop } from './closed-loop.mjs';

export async function stream(job) {
  let onGetMessage;
  const { sessions, close } = await openClients(job, 'progress', (text) => onGetMessage?.(text));
  const meta = job.era === 'modern' ? `${envelopeOf()},` : '';
  const result = await runClosedLoop(job, (tally) => {
    onGetMessage = () => tally.fault('an event on the GET stream');
    return sessions.map((session) => createSlot(session, { events: job.events, meta, tally }));
  });
  return { ...result, notClosed: await close() };
}

let nextId = 1;

function createSlot(session, { events, meta, tally }) {
  const connection = session.connect();
  return (done) => {
    const id = nextId++;
    const sentAt = performance.now();
    const token = `"progressToken":${id},"progress":`;
    let seen = 0;
    let isAnswered = false;
    const takeEvent = (text) => {
      const at = text.indexOf(token) + token.length;
      if (at < token.length) return tally.fault('an event of another call');
      seen += 1;
      if (Number.parseInt(text.slice(at, at + 8), 10) !== seen)
        return tally.fault('an event lost, doubled or reordered');
      if (tally.isRecording) tally.events += 1;
    };
    session.post(connection, [requestText(id, events, meta)], {
      onMessage(text) {
        if (text.includes('"notifications/progress"')) return takeEvent(text);
        isAnswered = text.includes('"done"') && new RegExp(`"id":${id}[,}]`).test(text);
        if (isAnswered) tally.answered(performance.now() - sentAt);
      },
      onDone(error, status, text) {
        if (error !== undefined || status >= 300) tally.fault(error?.message ?? `HTTP ${status} ${text}`);
        else if (!isAnswered) tally.fault('no answer at the end of its stream');
        else if (seen !== events) tally.fault('events missing');
        done();
      },
    });
  };
}

const requestText = (id, n, meta) =>
  `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"progress","arguments":{"n":${n}},"_meta":{${meta}"progressToken":${id}}}}`;
