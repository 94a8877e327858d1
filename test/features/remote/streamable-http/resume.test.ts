import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { CookieJar } from '../../../../src/core/backend/cookie-jar.ts';
import {
  createResumeStateReporter,
  parseResumeState,
  type ResumeState,
} from '../../../../src/features/remote/streamable-http/resume-state.ts';
import { openStreamableHttp } from '../../../../src/features/remote/streamable-http/streamable-http-backend.ts';
import { openBackend } from '../../../core/backend/open-backend.ts';
import { asMessage } from '../../../support/as-message.ts';
import { waitFor } from '../../../support/wait-for.ts';
import {
  answerTo,
  beginStream,
  event,
  initialize,
  initialized,
  json,
  type Manners,
  note,
  request,
  sessionId,
  startHttpServer,
  welcome,
} from './streamable-http-server.ts';

/** A server whose streams are resumed as the test says, by the id after which. */
const resumedBy = (answers: Record<string, (write: (text: string) => void) => void>): Manners => ({
  onGet({ request: { headers }, response }) {
    const answer = answers[String(headers['last-event-id'])];
    if (answer === undefined) return void response.writeHead(headers['last-event-id'] ? 400 : 405).end();
    beginStream(response);
    answer((text) => response.write(text));
  },
});

const known = { id: sessionId, version: '2025-11-25' };

async function goOn(
  manners: Manners,
  state: ResumeState,
  pending: (string | number)[],
  taken: object[] = [],
  cookies?: CookieJar,
) {
  const server = await startHttpServer(manners);
  const resume = {
    state: JSON.stringify(state),
    pending,
    delivered: taken.map(asMessage),
  };
  return { server, ...openBackend((events) => openStreamableHttp({ url: server.url }, events, { resume, cookies })) };
}

test('cookies of the server go back to it, also from the next backend of the session', async () => {
  const states: ResumeState[] = [];
  const cookies = new CookieJar();
  const first = await startHttpServer({
    onInitialize: ({ message, response }) =>
      json(response, answerTo(message, welcome), { 'mcp-session-id': sessionId, 'set-cookie': 'node=one; Path=/' }),
  });
  const { send, messages } = openBackend((events) =>
    openStreamableHttp(
      { url: first.url },
      { ...events, onState: (state) => void states.push(parseResumeState(state)) },
      { cookies },
    ),
  );
  send(initialize);
  await messages.next();
  send(initialized);
  await first.posts.next();
  expect((await first.posts.next()).request.headers.cookie).toBe('node=one');
  const kept = new CookieJar();
  kept.restore(cookies.state);
  const next = await goOn({}, states.at(-1) as ResumeState, [], [], kept);
  next.send(request(1));
  expect((await next.server.posts.next()).request.headers.cookie).toBe('node=one');
});

describe('[P3] [P4] a backend that goes on where another one stood', () => {
  test('resumes the streams of open calls, leaves out what was taken, and sends no initialize', async () => {
    const { server, messages, send, unanswered } = await goOn(
      resumedBy({
        e1: (write) =>
          write(`${event(note, 'e2')}${event({ ...note, n: 2 }, 'e3')}${event(answerTo({ id: 1 }), 'e4')}`),
        g1: (write) => write(event({ ...note, of: 'get' }, 'g2')),
      }),
      {
        ...known,
        cursor: 'g1',
        streams: [
          { ids: [1], cursor: 'e1' },
          { ids: [9], cursor: 'over' },
        ],
      },
      [1, 2],
      [note],
    );
    expect(await unanswered.next()).toEqual({ ids: [2], reason: 'outcome_unknown' });
    await waitFor(() => messages.items.length === 3, { what: 'what the server says' });
    expect(messages.items.map((text) => JSON.parse(text))).toEqual(
      expect.arrayContaining([{ ...note, n: 2 }, answerTo({ id: 1 }), { ...note, of: 'get' }]),
    );
    expect(server.gets.items.map(({ request: { headers } }) => headers['last-event-id']).sort()).toEqual(['e1', 'g1']);
    send(request(3));
    const { request: posted } = await server.posts.next();
    expect(posted.headers).toMatchObject({ 'mcp-session-id': sessionId, 'mcp-protocol-version': '2025-11-25' });
    expect(server.posts.items).toHaveLength(1);
  });

  test('reports calls whose streams the server does not resume', async () => {
    const { unanswered, ends } = await goOn(resumedBy({}), { ...known, streams: [{ ids: [1], cursor: 'x' }] }, [1]);
    expect(await unanswered.next()).toEqual({ ids: [1], reason: 'server_unreachable' });
    expect(ends).toEqual([]);
  });

  test('takes a message of a GET stream without event ids for a new one, also if it equals an earlier one', async () => {
    const { messages } = await goOn(
      { onGet: ({ response }) => void beginStream(response).write(event(note)) },
      { ...known, streams: [] },
      [],
      [note],
    );
    expect(JSON.parse(await messages.next())).toEqual(note);
  });

  test('ends if the server has forgotten the session', async () => {
    const { end } = await goOn(
      {
        onGet: ({ response }) => void response.writeHead(404).end(),
        onPost: ({ response }) => void response.writeHead(404).end(),
      },
      { ...known, streams: [{ ids: [1], cursor: 'x' }] },
      [1],
    );
    expect(await end()).toMatchObject({ reason: 'exited' });
  });
});

test('a session id may come late, and another one with each answer: the newest is sent, and told', async () => {
  let answered = 0;
  const next = () => ({ 'mcp-session-id': `id-${++answered}` });
  const server = await startHttpServer({
    onInitialize: ({ message, response }) => json(response, answerTo(message, welcome)),
    onPost: ({ message, response }) =>
      message.id === undefined ? void response.writeHead(202, next()).end() : json(response, answerTo(message), next()),
  });
  const states: ResumeState[] = [];
  const { send, messages } = openBackend((events) =>
    openStreamableHttp(
      { url: server.url },
      { ...events, onState: (state) => void states.push(parseResumeState(state)) },
    ),
  );
  send(initialize);
  await messages.next();
  send(initialized);
  for (const id of [1, 2]) {
    send(request(id));
    await messages.next();
  }
  const ids = server.posts.items.map(({ request: { headers } }) => headers['mcp-session-id']);
  expect(ids).toEqual([undefined, undefined, 'id-1', 'id-2']);
  await waitFor(() => states.at(-1)?.id === 'id-3', { what: 'the newest id' });
});

test('where a backend stands is told when the session begins and when a call’s stream can be resumed, not for short calls', async () => {
  const server = await startHttpServer({
    onPost({ message, response }) {
      if (message.id === undefined) return void response.writeHead(202).end();
      beginStream(response).write(event(note, `e${message.id}`));
      if (message.id !== 'long') response.end(event(answerTo(message), 'x'));
    },
  });
  const states: ResumeState[] = [];
  const { send, messages } = openBackend((events) =>
    openStreamableHttp(
      { url: server.url },
      { ...events, onState: (state) => void states.push(parseResumeState(state)) },
    ),
  );
  send(initialize);
  await messages.next();
  await waitFor(() => states.length === 1, { what: 'the beginning' });
  expect(states).toEqual([{ ...known, streams: [] }]);
  send(initialized);
  for (let i = 0; i < 20; i++) send(request(i));
  await waitFor(() => messages.items.length === 41, { what: 'short calls' });
  send(request('long'));
  await waitFor(() => states.length === 2, { what: 'the stream of the long call' });
  expect(states[1]).toEqual({ ...known, streams: [{ ids: ['long'], cursor: 'elong' }] });
});

test('what moves on is told seldom, and nothing twice', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  let cursor = 'a';
  const told: string[] = [];
  const teller = createResumeStateReporter(
    () => ({ cursor, streams: [] }),
    (state) => void told.push(parseResumeState(state).cursor ?? ''),
  );
  teller.began();
  for (const next of ['b', 'c']) {
    cursor = next;
    teller.moved();
    await vi.advanceTimersByTimeAsync(2_000);
  }
  expect(told).toEqual(['a']);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(told).toEqual(['a', 'c']);
  teller.moved();
  teller.changed();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(told).toEqual(['a', 'c']);
  cursor = 'd';
  teller.moved();
  teller.changed();
  await vi.advanceTimersByTimeAsync(250);
  expect(told).toEqual(['a', 'c', 'd']);
  teller.changed();
  teller.stop();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(told).toHaveLength(3);
});
