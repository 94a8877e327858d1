// Trials of gateways: what each does, seen and not read. All run against the same server in Node.js, which knows only revisions with sessions.
import { setTimeout as sleep } from 'node:timers/promises';
import { envelopeOf, statelessVersion } from './mcp-session.mjs';
import { descendants, isAlive } from './proc.mjs';
import { startTarget, stopTarget } from './target-process.mjs';
import { TrialClient } from './trial-client.mjs';
import { within } from './wait.mjs';

const no = (seen) => ({ isDone: false, seen });
const either = (isDone, seen) => ({ isDone, seen });

/** The text of a result that does not say that it failed. */
const textOf = ({ answer: { result } = {} }) => (result?.isError ? undefined : result?.content?.[0]?.text);
const answered = (outcome, text) => textOf(outcome) === text;

/** What an outcome was, in words. */
function inWords({ answer, fault, status }) {
  if (answer?.result !== undefined) return answer.result.isError ? 'a result that says it failed' : 'an answer';
  if (answer?.error !== undefined) return `error ${answer.error.code}`;
  return fault ?? (status >= 300 ? `HTTP ${status}` : `HTTP ${status} without an answer`);
}

const pidOf = async (client) => textOf(await client.tool('pid'));
const timesOf = (count, make) => Promise.all(Array.from({ length: count }, (_, i) => make(i)));

/** A session with its GET stream, which may be refused. */
async function withStream(gateway, limitMs = 5_000) {
  const client = await gateway.open();
  const stream = client.stream({ limitMs });
  await sleep(200); // no gateway says when the stream counts
  return { client, stream };
}

async function keepsSessions(gateway) {
  const client = await gateway.open();
  if (client.id === undefined) return no('no `Mcp-Session-Id`');
  const own = await client.tool('pid');
  const other = await client.at(gateway.port, crypto.randomUUID()).tool('pid');
  return either(own.answer !== undefined && other.answer?.result === undefined, `an unknown id gets ${inWords(other)}`);
}

async function ownProcess(gateway) {
  const pids = await timesOf(2, async () => pidOf(await gateway.open()));
  if (pids.includes(undefined)) return no('a call failed');
  return either(pids[0] !== pids[1], pids[0] === pids[1] ? 'two sessions meet one process' : 'a process each');
}

/** Sessions that use the same ids and progress tokens at the same time. */
async function noMixUp(gateway) {
  const [sessions, calls] = [8, 25];
  const clients = await timesOf(sessions, () => gateway.open());
  let wrong = 0;
  let lost = 0;
  for (let id = 1; id <= calls; id++) {
    await Promise.all(
      clients.map(async (client, i) => {
        const text = textOf(await client.tool('echo', { text: `s${i}` }, { id }));
        if (text === undefined) lost += 1;
        else if (text !== `s${i}`) wrong += 1;
      }),
    );
  }
  return either(wrong + lost === 0, `${sessions * calls} calls: ${wrong} wrong answers, ${lost} without an answer`);
}

async function progress(gateway) {
  const [sessions, events] = [4, 5];
  const all = await timesOf(sessions, () => withStream(gateway));
  let own = 0;
  let foreign = 0;
  await Promise.all(
    all.map(async ({ client, stream }, i) => {
      const { messages } = await client.tool('wait', { ms: 30, events, tag: `s${i}` }, { id: 1 });
      await sleep(300);
      stream.stop();
      for (const { method, params } of [...messages, ...stream.outcome.messages]) {
        if (method === 'notifications/progress') params.message === `s${i}` ? own++ : foreign++;
      }
    }),
  );
  const seen = `${own} of ${sessions * events} arrive${foreign > 0 ? `, and ${foreign} of other clients` : ''}`;
  return either(own === sessions * events && foreign === 0, seen);
}

async function question(gateway) {
  const { client, stream } = await withStream(gateway);
  const outcome = await client.tool('ask', { tag: 'q1' }, { limitMs: 4_000 });
  stream.stop();
  if (answered(outcome, 'accept q1')) return either(true, 'asked and answered');
  const isAsked = [...outcome.messages, ...stream.outcome.messages].some(
    ({ method }) => method === 'elicitation/create',
  );
  return no(`${isAsked ? 'asked' : 'not asked'}, and the call gets ${inWords(outcome)}`);
}

async function modernClient(gateway) {
  const outcome = await gateway
    .client()
    .request(
      'tools/call',
      { name: 'echo', arguments: { text: 'modern' }, _meta: JSON.parse(`{${envelopeOf()}}`) },
      { headers: { 'Mcp-Protocol-Version': statelessVersion, 'Mcp-Method': 'tools/call', 'Mcp-Name': 'echo' } },
    );
  return either(answered(outcome, 'modern'), inWords(outcome));
}

/** A stream that is cut in the middle of a call. */
async function resume(gateway) {
  const [events, cutAfter] = [10, 3];
  const client = await gateway.open();
  const cut = await client.tool('wait', { ms: 100, events, tag: 'r1' }, { id: 7, cutAfter });
  if (cut.messages.length < cutAfter) return no(`no stream to cut: ${cut.messages.length} events before the answer`);
  const lastEventId = cut.eventIds.at(-1);
  if (lastEventId === undefined) return no('no event ids');
  const rest = await client.stream({ lastEventId, awaits: 7, limitMs: 4_000 }).isOver;
  const got = rest.messages.filter(({ method }) => method === 'notifications/progress').length;
  const isWhole = answered(rest, 'r1') && got === events - cutAfter;
  return either(isWhole, `${got} of ${events - cutAfter} events and ${answered(rest, 'r1') ? 'the' : 'no'} answer`);
}

async function replica(gateway) {
  const other = await gateway.startAnother();
  const client = await gateway.open();
  if (client.id === undefined) return no('no sessions');
  const pid = await pidOf(client);
  const outcome = await client.at(other).tool('pid');
  if (textOf(outcome) === undefined) return no(inWords(outcome));
  return either(
    textOf(outcome) === pid,
    textOf(outcome) === pid ? 'the same process answers' : 'another process answers',
  );
}

async function longCall(gateway, { longMs }) {
  const client = await gateway.open();
  const outcome = await client.tool('wait', { ms: longMs, tag: 'l1' }, { limitMs: longMs + 10_000 });
  return either(answered(outcome, 'l1'), inWords(outcome));
}

/** Kills the process of a session while it works on a call; three things are looked at. */
async function killedServer(gateway) {
  const client = await gateway.open();
  const pid = Number(await pidOf(client));
  const startedAt = performance.now();
  const running = client.tool('wait', { ms: 8_000, tag: 'k1' }, { limitMs: 6_000 });
  await sleep(200);
  process.kill(pid, 'SIGKILL');
  const inFlight = await running;
  const ms = performance.now() - startedAt - 200;
  const isPrompt = inFlight.fault === undefined || inFlight.fault.startsWith('the connection');
  await sleep(1_500); // time for a restart
  const same = await client.tool('pid', {}, { limitMs: 5_000 });
  const fresh = await (await gateway.open()).tool('pid', {}, { limitMs: 5_000 });
  return {
    killedCall: either(
      isPrompt && inFlight.answer !== undefined,
      isPrompt ? `${inWords(inFlight)} after ${Math.round(ms / 10) * 10} ms` : inWords(inFlight),
    ),
    killedSession: either(textOf(same) !== undefined, inWords(same)),
    killedNext: either(textOf(fresh) !== undefined, gateway.isAlive() ? inWords(fresh) : 'the gateway ended'),
  };
}

async function killedGateway(gateway) {
  const client = await gateway.open();
  void client.tool('wait', { ms: 60_000 }); // a server that has nothing to do would end with its stdin
  await client.tool('pid');
  const children = descendants(gateway.pid);
  process.kill(gateway.pid, 'SIGKILL');
  await within(3_000, () => !children.some(isAlive));
  const left = children.filter(isAlive).length;
  for (const pid of children.filter(isAlive)) process.kill(pid, 'SIGKILL');
  await gateway.startAgain();
  const outcome = await client.tool('pid');
  const isKept = client.id !== undefined && textOf(outcome) !== undefined;
  return {
    noOrphans: either(left === 0, `${left} of ${children.length} processes left`),
    restarted: either(isKept, client.id === undefined ? 'no sessions' : inWords(outcome)),
  };
}

/** Each run starts a gateway afresh. `rows`: what is looked at, as the page says it; a trial of several has an object with a result for each. */
export const trials = [
  { run: keepsSessions, rows: { sessions: 'Sessions: an id, and other ids are refused' } },
  { run: ownProcess, rows: { ownProcess: 'A server process of its own for each session' } },
  { run: noMixUp, rows: { noMixUp: 'Clients with equal request ids get their own answers' } },
  { run: progress, rows: { progress: 'Clients with equal progress tokens get their own progress' } },
  { run: question, rows: { question: 'A question of the server reaches the client of the call' } },
  { run: modernClient, rows: { modern: 'A call of 2026-07-28 reaches a server with sessions' } },
  { run: resume, rows: { resume: 'A cut stream goes on, with the answer' } },
  { run: replica, rows: { replica: 'Another instance serves the session' } },
  { run: longCall, rows: { long: 'A call of 90 s without a sign of life is answered' } },
  {
    run: killedServer,
    rows: {
      killedCall: 'Server killed: the running call is told',
      killedSession: 'Server killed: the session goes on',
      killedNext: 'Server killed: a new session works',
    },
  },
  {
    run: killedGateway,
    rows: {
      noOrphans: 'Gateway killed: no process is left',
      restarted: 'Gateway killed and started again: the session goes on',
    },
  },
];

const openLimitMs = 10_000;

/** A target that runs, as trials use it. */
async function startGateway(target, options) {
  const all = [];
  const start = async (of, more) => {
    const started = await startTarget(target.name, of, { ...options, ...more });
    all.push(started);
    return started;
  };
  let started = await start(target);
  const gateway = {
    get port() {
      return started.ports[0];
    },
    get pid() {
      return started.pids[0];
    },
    isAlive: () => isAlive(started.pids[0]),
    client: () => new TrialClient(started.ports.slice(0, 1), { path: target.path }),
    async open() {
      const client = gateway.client();
      // A trial goes on with a session that cannot be opened: what its calls get is told.
      await Promise.race([client.open().catch(() => undefined), sleep(openLimitMs, undefined, { ref: false })]);
      return client;
    },
    async startAgain() {
      started = await start(target, { again: started });
    },
    /** The port of another instance. */
    async startAnother() {
      if (target.replicated === undefined) return (await start(target)).ports[0];
      started = await start(target.replicated);
      return started.ports[1];
    },
    async stop() {
      for (const one of all) await stopTarget(one);
    },
  };
  return gateway;
}

/** One trial of one target: `[row, result]` for each of its rows. Rejects if the target does not start. */
export async function runTrial({ run, rows }, target, options) {
  const names = Object.keys(rows);
  const gateway = await startGateway(target, options);
  try {
    const result = await run(gateway, options);
    return names.map((name) => [name, names.length > 1 ? result[name] : result]);
  } catch (error) {
    return names.map((name) => [name, no(`failed: ${error.message.split('\n', 1)[0]}`)]);
  } finally {
    await gateway.stop();
  }
}
