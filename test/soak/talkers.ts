import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { Random } from '../resume/random.ts';
import { type Answer, initialize, type Message, post, type Session } from '../support/http-client.ts';
import { retryWith } from '../support/input-required.ts';
import { callModern, metaKeys } from '../support/modern-client.ts';
import { connectOld, type OldClient } from '../support/old-client.ts';
import { follow, type Listened, listen } from '../support/resuming-client.ts';
import { withDeadline } from '../support/wait-for.ts';
import { takeovers } from './faults.ts';
import type { Ledger } from './ledger.ts';
import type { Stage } from './stage.ts';

/** What clients of one kind do again and again; throws nothing that it has not noted. */
interface Talker {
  readonly name: string;
  /** How often it is done, about. */
  readonly everyMs: number;
  readonly atOnce?: number;
  once(tools: TalkTools): Promise<void>;
}

interface TalkTools {
  readonly stage: Stage;
  readonly ledger: Ledger;
  readonly random: Random;
  readonly stopped: AbortSignal;
  /** A text that nobody else says. */
  mark(): string;
  /** Times what it runs, and notes its outcome under the talker's name, or a part of it. */
  deed(part: string, ownMs: number, run: () => Promise<string>): Promise<string>;
  pause(ms: number): Promise<void>;
}

/** Nothing that is done once may take longer, whatever happens. */
const hangMs = 90_000;

export interface Talking {
  /** Resolves when all have ended what they do. */
  stop(): Promise<void>;
}

/** Lets all of them talk until they are stopped. `load` is 1 for the rates as they stand here. */
export function startTalkers(stage: Stage, ledger: Ledger, random: Random, load: number): Talking {
  const stopped = new AbortController();
  setMaxListeners(0, stopped.signal); // each client waits for it
  const pause = (ms: number): Promise<void> => delay(ms, undefined, { signal: stopped.signal }).catch(() => undefined);
  let marks = 0;
  const run = async ({ name, everyMs, once }: Talker, own: Random): Promise<void> => {
    const tools: TalkTools = {
      ...{ stage, ledger, random: own, stopped: stopped.signal, pause },
      mark: () => `talk-${++marks}-${own.integer(0, 1e9)}`,
      async deed(part, ownMs, act) {
        const startedAt = performance.now();
        const acting = withDeadline(act(), { deadlineMs: hangMs, what: part });
        const outcome = await acting.catch(outcomeOfError);
        ledger.note({
          kind: part === '' ? name : `${name}: ${part}`,
          startedAt,
          endedAt: performance.now(),
          outcome,
          ownMs,
        });
        return outcome;
      },
    };
    await pause(own.integer(0, everyMs / load));
    while (!stopped.signal.aborted) {
      await once(tools).catch((error: Error) => ledger.fail(`${name}: ${error.stack}`));
      await pause(own.integer(everyMs / load / 2, (1.5 * everyMs) / load));
    }
  };
  const running = talkers.flatMap((talker) =>
    Array.from({ length: talker.atOnce ?? 1 }, () => run(talker, random.fork())),
  );
  return {
    async stop() {
      stopped.abort();
      await Promise.all(running);
    },
  };
}

/** How an answer ended, and `wrong answer` for one that is none to what was asked. */
function outcomeOf(answer: Pick<Answer, 'status' | 'text' | 'messages'>, expected: string): string {
  const message: Message = answer.messages.findLast(({ result, error }: Message) => result ?? error);
  if (message?.error !== undefined) return message.error.data?.reason ?? `error ${message.error.code}`;
  if (answer.status === 502) return 'broken'; // the balancer's, which found no instance
  if (message === undefined) return `status ${answer.status}: ${answer.text.slice(0, 100)}`;
  const text = JSON.stringify(message.result);
  return text.includes(expected) ? 'answered' : `wrong answer: ${text.slice(0, 300)}`;
}

function outcomeOfError(error: unknown): string {
  const { message, code } = error as NodeJS.ErrnoException;
  if (/ECONNRE|EPIPE/.test(code ?? '') || /socket hang up|connection closed|aborted/i.test(message)) return 'broken';
  if (message.startsWith('Ended before')) return 'broken';
  if (/initialized? (failed with|got) 502/.test(message)) return 'broken';
  const [, reason] = /"reason":"([a-z_]+)"/.exec(message) ?? [];
  return reason ?? message;
}

/** The reason in a fault, or the status that came without one. */
const reasonOf = ({ status, text }: Answer): string => /"reason":"([a-z_]+)"/.exec(text)?.[1] ?? `status ${status}`;

async function deleteOf(session: Session): Promise<string> {
  const answer = await session.delete();
  return answer.status >= 200 && answer.status < 300 ? 'answered' : reasonOf(answer);
}

const callOf = (id: string, name: string, args: object) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: args, _meta: { progressToken: id } },
});

const headersOf = ({ id, version }: Session) => ({ 'Mcp-Session-Id': id, 'MCP-Protocol-Version': version });

/** Runs a call of a session as a good client does, which comes again with the last event id, and answers what it is asked. */
async function callAndFollow(
  url: string,
  session: Session,
  { id, name, args, expected }: { id: string; name: string; args: object; expected: string },
  answer?: (request: Message) => object,
): Promise<string> {
  let response: Message;
  const responses: Promise<unknown>[] = [];
  const followed = await follow(url, {
    headers: headersOf(session),
    body: callOf(id, name, args),
    deadlineMs: hangMs,
    stayAway: () => delay(50),
    isLast({ data }) {
      if (data === undefined || data === '') return false;
      const message: Message = JSON.parse(data);
      if (message.method !== undefined && message.id !== undefined && answer !== undefined) {
        // A server's question; what the answer comes to is seen by the answer to the call.
        responses.push(session.respond(message.id, answer(message)).catch(() => undefined));
      }
      if (message.method !== undefined || (message.result === undefined && message.error === undefined)) return false;
      response = message;
      return true;
    },
  });
  await Promise.all(responses);
  const last = followed.transcript.at(-1) as Listened;
  if (followed.outcome === 'lost') return 'broken';
  if (followed.outcome !== 'done') {
    if (last.method === 'GET') return `a resume got ${last.status}: ${last.text.slice(0, 200)}`;
    response = last.text.startsWith('{') ? JSON.parse(last.text) : undefined;
  }
  return outcomeOf({ status: last.status, text: last.text, messages: response ? [response] : [] }, expected);
}

const capabilities = { sampling: {}, elicitation: {}, roots: {} };
const meta = { [metaKeys.clientCapabilities]: capabilities };

/** Sessions that are opened, used, deleted, and then unknown. */
const churn: Talker = {
  name: 'sessions that come and go',
  everyMs: 4_000,
  async once({ stage, random, mark, deed }) {
    const url = stage.urlOf(random.chance(0.5) ? 'stdio' : 'remote');
    let session: Session | undefined;
    await deed('open', 1_000, async () => {
      session = await initialize(url);
      return 'answered';
    });
    if (session === undefined) return;
    const { id, request } = session;
    const listening = random.chance(0.5) ? listen(url, { headers: headersOf(session) }) : undefined;
    const text = mark();
    await deed('call', 0, async () =>
      outcomeOf(await request('tools/call', { name: 'quick', arguments: { mark: text } }), text),
    );
    const deleted = await deed('delete', 0, () => deleteOf(session as Session));
    if (deleted === 'answered') {
      await deed('after its end', 0, async () => {
        const answer = await post(url, { jsonrpc: '2.0', id: 'p', method: 'ping' }, { 'Mcp-Session-Id': id });
        const outcome = outcomeOf(answer, '');
        return outcome === 'unknown_session' ? 'answered' : outcome;
      });
      const ended = listening?.ended ?? Promise.resolve();
      await deed('end of its stream', 0, () => ended.then(() => 'answered'));
    }
    listening?.drop();
  },
};

/** Round trips of a legacy client: the server asks in the middle of a call, and the answer comes by any instance. */
const asker = (server: 'asks' | 'modern', tools: readonly string[]): Talker => ({
  name: `questions to legacy clients on ${server}`,
  everyMs: 2_000,
  async once({ stage, mark, deed, random, pause, stopped }) {
    const url = stage.urlOf(server);
    let session: Session | undefined;
    await deed('open', 2_000, async () => {
      session = await initialize(url, { capabilities });
      return 'answered';
    });
    if (session === undefined) return;
    const own = session;
    for (let n = 0; n < 12 && !stopped.aborted; n++) {
      const text = mark();
      const name = tools[random.integer(0, tools.length - 1)] as string;
      const args = { message: 'who', prompt: 'what', text };
      const call = { id: `q${n}`, name, args, expected: text };
      const outcome = await deed('call', 500, () =>
        callAndFollow(url, own, call, (request) => answerWith(text, request)),
      );
      if (outcome === 'unknown_session') return;
      await pause(random.integer(500, 3_000));
    }
    await deed('delete', 0, () => deleteOf(own));
  },
});

function answerWith(text: string, { method }: Message): object {
  if (method === 'roots/list') return { roots: [{ uri: `file:///${text}`, name: text }] };
  if (method !== 'elicitation/create') {
    return { role: 'assistant', content: { type: 'text', text }, model: 'm' };
  }
  return { action: 'accept', content: { username: text, email: 'a@b.c', name: text } };
}

/** Clients of the modern era on servers of both, also with a question in the middle, whose retry is at another instance. */
const modern = (server: 'stdio' | 'asks' | 'modern', tool: string): Talker => ({
  name: `modern clients on ${server}`,
  everyMs: 1_000,
  async once({ stage, mark, deed, random }) {
    const url = stage.urlOf(server);
    const text = mark();
    if (server !== 'stdio' && random.chance(0.3)) {
      await deed('question', 1_000, async () => {
        const name = 'test_input_required_result_elicitation';
        const asked = await callModern(url, name, {}, { meta });
        if (asked.json?.result?.resultType !== 'input_required') return outcomeOf(asked, 'input_required');
        const params = retryWith(asked, () => ({ action: 'accept', content: { name: text } }));
        return outcomeOf(await callModern(url, name, {}, { meta, params }), text);
      });
      return;
    }
    if (random.chance(0.3) && server !== 'stdio') {
      await deed('progress', 1_000, async () => {
        const count = random.integer(2, 10);
        const args = { count, gapMs: random.integer(0, 50), marker: text };
        const answer = await callModern(url, 'progress', args, { meta: { progressToken: text } });
        const told = answer.messages.filter(({ method }: Message) => method === 'notifications/progress');
        const isInOrder = told.every(({ params }: Message, n) => params.progress === n + 1 && params.message === text);
        const outcome = outcomeOf(answer, text);
        if (outcome === 'answered' && (told.length !== count || !isInOrder)) return `progress: ${JSON.stringify(told)}`;
        return outcome;
      });
      return;
    }
    await deed('call', 1_000, async () => outcomeOf(await callModern(url, tool, { text, mark: text }), text));
  },
});

/** Calls that are cancelled: they end, with an error, within the grace of a cancelled call. */
const canceller: Talker = {
  name: 'cancelled calls',
  everyMs: 10_000,
  async once({ stage, deed, stopped, pause }) {
    const url = stage.urlOf('stdio');
    let session: Session | undefined;
    await deed('open', 1_000, async () => {
      session = await initialize(url);
      return 'answered';
    });
    if (session === undefined) return;
    const own = session;
    for (let n = 0; n < 4 && !stopped.aborted; n++) {
      await deed('call', 1_000 + 200, async () => {
        const id = `cancelled-${n}`;
        const called = callAndFollow(url, own, { id, name: 'hold', args: {}, expected: 'never' });
        await delay(200);
        called.catch(() => undefined); // where the notification breaks nobody waits for it
        const told = await own.notify('notifications/cancelled', { requestId: id });
        const outcome = told.status === 202 ? await called : reasonOf(told);
        return outcome === 'cancelled' ? 'answered' : outcome;
      });
      await pause(500);
    }
    await deed('delete', 0, () => deleteOf(own));
  },
};

/** Clients that vanish in the middle of a call and never come back: their sessions end when they have been idle. */
const vanisher: Talker = {
  name: 'clients that vanish',
  everyMs: 15_000,
  async once({ stage, deed, random }) {
    const url = stage.urlOf(random.chance(0.7) ? 'stdio' : 'remote');
    await deed('', 1_000, async () => {
      const session = await initialize(url);
      const body = callOf('v', 'count', { count: random.integer(5, 50), gapMs: 20, mark: 'mark=gone/v.' });
      const listening = listen(url, { headers: headersOf(session), body });
      const getting = listen(url, { headers: headersOf(session) });
      await delay(random.integer(0, 400));
      listening.drop();
      getting.drop();
      return 'answered';
    });
  },
};

/** Sessions that nobody uses for longer than their processes live, and that wake when they are used again. */
const sleeper: Talker = {
  name: 'sessions that hibernate',
  everyMs: 1_000,
  atOnce: 3,
  async once({ stage, deed, mark, random, pause, stopped, ledger }) {
    const url = stage.urlOf('sleepy');
    const openedAt = performance.now();
    let session: Session | undefined;
    await deed('open', 1_000, async () => {
      session = await initialize(url);
      return 'answered';
    });
    if (session === undefined) return;
    const own = session;
    const listening = { isOpen: random.chance(0.7) };
    const following = listening.isOpen ? stayOpen(url, own, stopped, ledger) : undefined;
    while (!stopped.aborted) {
      await pause(random.integer(8_000, 30_000));
      if (stopped.aborted) break;
      const text = mark();
      let isOver = false;
      await deed('wake', 1_000, async () => {
        const answer = await own.request('tools/call', { name: 'quick', arguments: { mark: text } });
        const outcome = outcomeOf(answer, text);
        if (outcome !== 'unknown_session') return outcome;
        isOver = true;
        // The third takeover in ten minutes ends a session.
        const from = Math.max(openedAt, performance.now() - 600_000);
        return ledger.near(takeovers, from, performance.now()).length >= 3 ? 'answered' : outcome;
      });
      if (isOver) return following?.stop();
    }
    following?.stop();
    await deed('delete', 0, () => deleteOf(own));
  },
};

/** Keeps the GET stream open, with the last event id after each break; tells of a status that must not be. */
function stayOpen(url: string, session: Session, stopped: AbortSignal, ledger: Ledger) {
  const left = new AbortController();
  const signal = AbortSignal.any([left.signal, stopped]);
  const run = async (): Promise<void> => {
    let after: string | undefined;
    while (!signal.aborted) {
      const listening = listen(url, {
        headers: headersOf(session),
        after,
        onEvent: ({ id }) => {
          after = id ?? after;
        },
      });
      const drop = (): void => listening.drop();
      signal.addEventListener('abort', drop);
      const { status, text } = await listening.ended;
      signal.removeEventListener('abort', drop);
      if (![0, 200, 404, 502].includes(status)) ledger.fail(`a GET of a session that sleeps got ${status}: ${text}`);
      if (status === 404) return;
      await delay(status === 200 ? 100 : 500);
    }
  };
  const running = run();
  return {
    async stop(): Promise<void> {
      left.abort();
      await running;
    },
  };
}

/** Clients of HTTP+SSE (2024-11-05), which reconnect with the last event id. */
const oldFace: Talker = {
  name: 'clients of HTTP+SSE',
  everyMs: 2_000,
  async once({ stage, deed, mark, random, pause, stopped }) {
    const baseUrl = stage.cluster.balancer.baseUrl;
    let client: OldClient | undefined;
    await deed('open', 2_000, async () => {
      client = await connectOld(baseUrl, { prefix: '/stdio' });
      return 'answered';
    });
    if (client === undefined) return;
    const own = client;
    let isOver = false;
    const keepOpen = async (): Promise<void> => {
      while (!isOver) {
        const { status } = await own.stream.ended;
        if (isOver || status === 404) return;
        await delay(100);
        if (!isOver) await own.connect();
        if (isOver) own.drop();
      }
    };
    const open = keepOpen();
    for (let n = 0; n < 20 && !stopped.aborted; n++) {
      const id = `old-${n}`;
      const text = mark();
      const count = random.integer(0, 10);
      const args = { count, gapMs: random.integer(0, 30), mark: text };
      const outcome = await deed('call', 1_000, async () => {
        const answer = await own.post(callOf(id, count === 0 ? 'quick' : 'count', args));
        if (answer.status !== 202) return reasonOf(answer);
        const message = await own.response(id, { deadlineMs: hangMs });
        const outcome = outcomeOf({ status: 200, text: '', messages: [message] }, text);
        const told = own.heard.items.filter(({ params }) => params?.progressToken === id);
        const isInOrder = told.every(({ params }, index) => params.progress === index + 1);
        if (!isInOrder || (outcome === 'answered' && told.length !== count)) return `progress: ${JSON.stringify(told)}`;
        return outcome;
      });
      if (outcome === 'unknown_token') break;
      await pause(random.integer(300, 2_000));
    }
    isOver = true;
    own.drop();
    await open;
  },
};

const talkers: readonly Talker[] = [
  churn,
  asker('asks', ['test_elicitation', 'test_sampling', 'roots']),
  asker('modern', ['test_input_required_result_elicitation', 'test_input_required_result_sampling']),
  modern('stdio', 'quick'),
  modern('asks', 'echo'),
  modern('modern', 'echo'),
  canceller,
  vanisher,
  sleeper,
  oldFace,
];
