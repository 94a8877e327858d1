import { Agent, type OutgoingHttpHeaders } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openRecorded, withRecorder } from '../hardening/recorder.ts';
import { everythingFixture, startGateway } from '../support/gateway.ts';
import { type Exchange, initialize, type Message, open, post, type Session } from '../support/http-client.ts';
import { type LocalGateway, startLocalGateway } from '../support/local-gateway.ts';
import { waitFor } from '../support/wait-for.ts';

const retryMs = 1_234;

let gateway: LocalGateway;
beforeAll(async () => {
  gateway = await startLocalGateway({
    command: everythingFixture,
    args: [
      '--sse.reconnectDelay',
      `${retryMs}ms`,
      '--sse.heartbeat',
      '50ms',
      '--timeouts.grace',
      '100ms',
      '--timeouts.drain',
      '0',
      '--sse.streamAfter',
      '600ms',
    ],
  });
});
afterAll(async () => void (await gateway?.stop()));

/** A session at a revision, with what it may ask of its client. */
const openAt = (version = '2025-11-25'): Promise<Session> =>
  initialize(gateway.url, { version, capabilities: { roots: {}, sampling: {} } });

const toolCall = (id: string | number, name: string, args: object = {}, meta?: object) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: args, ...(meta && { _meta: meta }) },
});
const progressCall = (id: string | number, count: number, gapMs = 0) =>
  toolCall(id, 'progress', { count, gapMs, marker: `m${id}` }, { progressToken: id });
const callFor = (session: Session, body: unknown, headers?: OutgoingHttpHeaders) =>
  session.send(body, headers).then((exchange) => exchange.answer());
const listChanged = { method: 'notifications/tools/list_changed' };
const isListChanged = ({ method }: Message): boolean => method === listChanged.method;
const prime = { id: expect.any(String), retry: retryMs, data: '' };

/** The text of the result of a call of a tool. */
const textOf = async (session: Session, name: string, args?: object): Promise<string> =>
  (await session.callTool(name, args)).content[0].text;

describe.each(['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'])('in a session of revision %s', (version) => {
  const isPriming = version === '2025-11-25';
  let session: Session;
  beforeAll(async () => {
    session = await openAt(version);
  });
  afterAll(async () => void (await session?.delete()));

  test('[R7.06] [R9.01] initialize is answered with that revision', () => {
    expect([session.version, session.initialized.serverInfo.name]).toEqual([version, 'everything-fixture']);
  });

  test('a fast call is answered as JSON', async () => {
    const { status, headers, json } = await callFor(session, toolCall('a', 'echo', { text: 'x' }));
    expect([status, headers['content-type']]).toEqual([200, 'application/json']);
    expect(json).toEqual({ jsonrpc: '2.0', id: 'a', result: { content: [{ type: 'text', text: 'x' }] } });
  });

  test('[R7.10] [R7.12] [R7.14] [R9.18] a call with progress is answered as a stream, which ends with the response', async () => {
    const { status, headers, events, messages } = await callFor(session, progressCall(7, 3));
    expect([status, headers['content-type']]).toEqual([200, 'text/event-stream']);
    expect(messages.map(({ id, params }) => id ?? params.progress)).toEqual([1, 2, 3, 7]);
    expect(events.filter(({ data }) => data === '')).toEqual(isPriming ? [prime] : []);
    expect(events.every(({ id }) => id !== undefined)).toBe(true);
    if (isPriming) expect(events[0]).toEqual(prime);
  });

  test('[R7.14] a slow call becomes a stream by time', async () => {
    const { headers, events, messages } = await callFor(session, toolCall(1, 'slow', { ms: 900 }));
    expect(headers['content-type']).toBe('text/event-stream');
    expect(messages).toMatchObject([{ id: 1, result: {} }]);
    expect(events).toHaveLength(isPriming ? 2 : 1);
  });

  test('[R7.07] [R7.14] [R9.18] GET opens a stream, primed by revision', async () => {
    const stream = await session.getStream();
    expect([stream.status, stream.headers['content-type']]).toEqual([200, 'text/event-stream']);
    await session.callTool('later', { notification: listChanged });
    await stream.nextMessage(isListChanged);
    expect(stream.events.items).toHaveLength(isPriming ? 2 : 1);
    if (isPriming) expect(stream.events.items[0]).toEqual(prime);
    stream.drop();
  });

  test('[R7.02] an array is answered as one, and refused where the revision has none', async () => {
    const batch = [toolCall(1, 'echo', { text: 'one' }), toolCall('1', 'echo', { text: 'two' })];
    const { status, headers, json } = await callFor(session, batch);
    if (version === '2025-03-26') {
      expect([status, headers['content-type']]).toEqual([200, 'application/json']);
      expect(json).toHaveLength(2);
      expect(json).toEqual(
        expect.arrayContaining([
          expect.objectContaining({ id: 1, result: { content: [{ type: 'text', text: 'one' }] } }),
          expect.objectContaining({ id: '1', result: { content: [{ type: 'text', text: 'two' }] } }),
        ]),
      );
    } else expect([status, json]).toMatchObject([400, { id: null, error: { code: -32600 } }]);
  });

  test('[R7.04] MCP-Protocol-Version may be missing or the session’s, and no other is invented for it', async () => {
    const ping = { jsonrpc: '2.0', id: 5, method: 'ping' };
    const at = (value: string | undefined): Promise<number> =>
      post(gateway.url, ping, {
        'Mcp-Session-Id': session.id,
        ...(value !== undefined && { 'MCP-Protocol-Version': value }),
      }).then((answer) => answer.status);
    expect([await at(undefined), await at(version)]).toEqual([200, 200]);
    expect([await at('1999-01-01'), await at('2026-07-28'), await at('x'), await at('')]).toEqual([400, 400, 400, 400]);
    // What the session does goes on by its own version.
    const { events } = await post(gateway.url, progressCall(6, 1), { 'Mcp-Session-Id': session.id });
    expect(events.filter(({ data }) => data === '')).toHaveLength(isPriming ? 1 : 0);
  });

  test('[R7.01] a notification and a response are accepted with 202 and no body', async () => {
    const answers = [await session.notify('notifications/roots/list_changed'), await session.respond(99, {})];
    expect(answers.map(({ status, text }) => [status, text])).toEqual([
      [202, ''],
      [202, ''],
    ]);
  });
});

describe('the answer to initialize', () => {
  // After the time of a heartbeat, the response would become a stream.
  let patient: LocalGateway;
  beforeAll(async () => {
    patient = await startLocalGateway({ command: everythingFixture });
  });
  afterAll(async () => void (await patient?.stop()));

  const body = {
    jsonrpc: '2.0',
    id: 'first',
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
  };

  test.each([
    ['*/*', 'application/json'],
    ['application/json', 'application/json'],
    ['application/json, text/event-stream', 'application/json'],
    ['text/event-stream', 'text/event-stream'],
    ['text/event-stream, application/json;q=0', 'text/event-stream'],
  ])('[R9.01] [R9.05] with Accept: %s is %s, and has the session id', async (accept, type) => {
    const { status, headers, messages } = await post(patient.url, body, { Accept: accept });
    expect([status, headers['content-type'], messages]).toMatchObject([200, type, [{ id: 'first', result: {} }]]);
    const id = headers['mcp-session-id'];
    expect(id).toMatch(/^[\x21-\x7e]{22,}$/);
    const deleted = await open(patient.url, { method: 'DELETE', headers: { 'Mcp-Session-Id': String(id) } });
    expect(deleted.status).toBe(200);
  });

  test('[R7.06] at a revision that nobody knows is the server’s own choice', async () => {
    const session = await openAt('2099-01-01');
    expect(session.version).toBe('2025-11-25');
    await session.delete();
  });
});

describe('what Accept allows', () => {
  let session: Session;
  beforeAll(async () => {
    session = await openAt();
  });
  afterAll(async () => void (await session?.delete()));

  test('only JSON: a slow call with progress is JSON all the same, and its progress is kept for GET', async () => {
    const { headers, json } = await callFor(session, progressCall(1, 3, 100), { Accept: 'application/json' });
    expect([headers['content-type'], json]).toMatchObject(['application/json', { id: 1, result: {} }]);
    const stream = await session.getStream();
    for (const progress of [1, 2, 3]) await stream.nextMessage(({ params }) => params?.progress === progress);
    stream.drop();
  });

  test('only SSE: a fast call is a stream', async () => {
    const { headers, events } = await callFor(session, toolCall(1, 'echo', { text: 'x' }), {
      Accept: 'text/event-stream',
    });
    expect(headers['content-type']).toBe('text/event-stream');
    expect(events).toEqual([prime, { id: expect.any(String), event: 'message', data: expect.stringContaining('"x"') }]);
  });

  test.each(['*/*', 'application/*, text/*', 'text/event-stream;q=0.1, application/json'])(
    'both: %s',
    async (accept) => {
      expect((await callFor(session, toolCall(1, 'echo'), { Accept: accept })).headers['content-type']).toBe(
        'application/json',
      );
      expect((await callFor(session, progressCall(2, 1), { Accept: accept })).headers['content-type']).toBe(
        'text/event-stream',
      );
    },
  );
});

describe('[R7.02] a batch of 2025-03-26', () => {
  let session: Session;
  beforeAll(async () => {
    session = await openAt('2025-03-26');
  });
  afterAll(async () => void (await session?.delete()));

  test('with a call that reports progress is one stream', async () => {
    const { headers, messages } = await callFor(session, [progressCall(1, 2), toolCall(2, 'echo'), progressCall(3, 1)]);
    expect(headers['content-type']).toBe('text/event-stream');
    const responses = messages.filter(({ id }) => id !== undefined).map(({ id }) => id);
    expect(responses.toSorted()).toEqual([1, 2, 3]);
    expect(messages).toHaveLength(6);
  });

  test('without a request gets 202', async () => {
    const notification = { jsonrpc: '2.0', method: 'notifications/roots/list_changed' };
    const { status, text } = await callFor(session, [notification, { jsonrpc: '2.0', id: 9, result: {} }]);
    expect([status, text]).toEqual([202, '']);
  });

  test('with notifications and requests is answered for the requests alone', async () => {
    const notification = { jsonrpc: '2.0', method: 'notifications/roots/list_changed' };
    const { json } = await callFor(session, [notification, toolCall(1, 'echo')]);
    expect(json).toMatchObject([{ id: 1 }]);
  });
});

describe('streams', () => {
  let session: Session;
  beforeAll(async () => {
    session = await openAt();
  });
  afterAll(async () => void (await session?.delete()));

  test('[R7.08] [R7.09] carry each message once, and the GET stream no response', async () => {
    const listener = await session.getStream();
    const calls = [1, 2, 3].map((id) => callFor(session, progressCall(id, 5, 5)));
    const fast = ['a', 'b'].map((id) => callFor(session, toolCall(id, 'logs', { count: 2 })));
    const answers = await Promise.all([...calls, ...fast]);
    await session.callTool('later', { notification: listChanged });
    await listener.nextMessage(isListChanged);
    listener.drop();

    const onListener = listener.events.items.filter(({ data }) => data).map(({ data }) => JSON.parse(data ?? ''));
    expect(onListener.filter(({ result, error }) => result ?? error)).toEqual([]);
    const everywhere = [...answers.map(({ messages }) => messages), onListener].flat();
    expect(everywhere.filter(({ method }) => method === 'notifications/progress')).toHaveLength(15);
    expect(everywhere.filter(({ method }) => method === 'notifications/message')).toHaveLength(4);
    expect(everywhere.filter(({ id }) => id !== undefined)).toHaveLength(5);
    answers.forEach(({ messages }, index) => {
      expect(messages.at(-1)?.id).toBe([1, 2, 3, 'a', 'b'][index]);
      const tokens = messages.filter(({ params }) => params?.progressToken !== undefined);
      expect(tokens.every(({ params }) => params.progressToken === index + 1)).toBe(true);
    });
  });

  test('[R7.13] have event ids that are unique over all of them', async () => {
    const listener = await session.getStream();
    await session.callTool('later', { notification: listChanged });
    await listener.nextMessage(isListChanged);
    const answers = await Promise.all([4, 5, 6].map((id) => callFor(session, progressCall(id, 10))));
    listener.drop();
    const ids = [...answers.flatMap(({ events }) => events), ...listener.events.items].map(({ id }) => id);
    expect(ids.length).toBeGreaterThan(36);
    expect(new Set(ids).size).toBe(ids.length);
    for (const id of ids) expect(id).toMatch(/^[\x21-\x7e]+$/);
  });

  test('get comments while nothing is said', async () => {
    const listener = await session.getStream();
    const slow = await session.send(toolCall(1, 'slow', { ms: 1_200 }));
    for (const { comments } of [listener, slow]) {
      expect(await comments.next()).toBe('keep-alive');
      await comments.next();
    }
    await slow.answer();
    listener.drop();
  });

  test('[R7.18] what is said while none is open is kept for the next GET, once and in order', async () => {
    const own = await openAt();
    const said = (data: number) => ({ method: 'notifications/message', params: { level: 'info', data } });
    const listen = async (): Promise<number[]> => {
      const stream = await own.getStream();
      await own.callTool('later', { notification: listChanged });
      await stream.nextMessage(isListChanged);
      stream.drop();
      const messages = stream.events.items.filter(({ data }) => data).map(({ data }) => JSON.parse(data ?? ''));
      return messages.filter((message) => !isListChanged(message)).map(({ params }) => params.data);
    };
    for (const data of [1, 2, 3]) {
      await own.callTool('later', { notification: said(data), ms: 0 });
      // This answer comes after what was said, and since it can only be JSON, what was said cannot go with it.
      await callFor(own, toolCall(`slow ${data}`, 'slow', { ms: 30 }), { Accept: 'application/json' });
    }
    expect(await listen()).toEqual([1, 2, 3]);
    expect(await listen()).toEqual([]);
    await own.delete();
  });

  test('[R7.14] [R9.18] a GET stream is primed also where something was said before', async () => {
    const own = await openAt();
    await own.callTool('later', { notification: listChanged, ms: 0 });
    await callFor(own, toolCall('slow', 'slow', { ms: 30 }), { Accept: 'application/json' });
    const stream = await own.getStream();
    await stream.nextMessage(isListChanged);
    expect(stream.events.items[0]).toEqual(prime);
    stream.drop();
    await own.delete();
  });
});

describe('the server behind it', () => {
  test('[R9.12] reports progress in one chunk with the result: it comes before the result, complete and in order', async () => {
    const session = await openAt();
    const report = (progress: number) => ({
      jsonrpc: '2.0',
      method: 'notifications/progress',
      params: { progressToken: 'p', progress },
    });
    for (const count of [1, 50]) {
      const text = Array.from({ length: count }, (_, index) => `${JSON.stringify(report(index + 1))}\n`).join('');
      const { messages } = await callFor(session, toolCall(1, 'raw_write', { text }, { progressToken: 'p' })); // one write
      expect(messages.map(({ id, params }) => id ?? params.progress)).toEqual(
        [...Array(count).keys()].map((n) => n + 1).concat(1),
      );
    }
    await session.delete();
  });

  test('[R6.02] gets the messages of its client, and nothing else: no HTTP, no refused body, no answer to nothing', async () => {
    await using recording = await startLocalGateway(withRecorder());
    const session = await openRecorded(recording.url, { version: '2025-03-26' });
    const messages = [
      { jsonrpc: '2.0', id: 1, method: 'test/x', params: { text: 'a\r\n\u2028b' } },
      { jsonrpc: '2.0', method: 'notifications/x' },
    ];
    const refused = [
      'GET / HTTP/1.1\r\n\r\n',
      '',
      '{}',
      '[]',
      '7',
      '{"jsonrpc":"2.0","id":null,"method":"x"}',
      '[{"jsonrpc":"2.0"}]',
    ];
    for (const body of refused) expect((await callFor(session, body)).status).toBe(400);
    await session.respond(5, { to: 'nothing' });
    for (const message of messages) await callFor(session, JSON.stringify(message, undefined, 2));
    await callFor(session, messages);
    const stream = await session.getStream();
    stream.drop();
    const lines = await session.lines();
    expect(lines.map((line) => JSON.parse(line))).toEqual([...messages, messages[1], messages[0]]);
    for (const line of lines) expect(line).not.toMatch(/[\r\n]/);
  });

  test('[R9.11] can be one of the SDK v2: one process for each session, begun with initialize', async () => {
    const program = `
      import { McpServer } from '@modelcontextprotocol/server';
      import { serveStdio } from '@modelcontextprotocol/server/stdio';
      serveStdio(() => {
        const server = new McpServer({ name: 'v2', version: '1.0.0' }, { capabilities: { tools: {} } });
        const call = async () => ({ content: [{ type: 'text', text: String(process.pid) }] });
        server.registerTool('pid', { description: 'Answers with its pid' }, call);
        return server;
      });`;
    await using v2 = await startGateway({ command: [process.execPath, '--input-type=module', '-e', program] });
    const sessions = await Promise.all(['2025-03-26', '2025-11-25'].map((version) => initialize(v2.url, { version })));
    expect(sessions.map(({ initialized }) => [initialized.serverInfo.name, initialized.protocolVersion])).toEqual([
      ['v2', '2025-03-26'],
      ['v2', '2025-11-25'],
    ]);
    const pids = await Promise.all(sessions.map(async (session) => Number(await textOf(session, 'pid'))));
    expect(pids.toSorted()).toEqual((await v2.descendants()).map(({ pid }) => pid).toSorted());
    expect(new Set(pids).size).toBe(2);
  });
});

describe('a client that goes', () => {
  test('[R7.11] cancels nothing: its call goes on in the server', async () => {
    const session = await openAt();
    const exchange = await session.send(toolCall('waits', 'wait_for_cancel', { key: 'gone' }));
    await exchange.nextMessage(({ params }) => params?.data === 'waiting gone');
    exchange.drop();
    // What the server is asked after that, it does after the end of the connection has arrived, or not long before it.
    for (let round = 0; round < 10; round++) expect(JSON.parse(await textOf(session, 'cancellations'))).toEqual([]);
    await session.notify('notifications/cancelled', { requestId: 'waits' });
    await waitFor(async () => JSON.parse(await textOf(session, 'cancellations'))[0]?.key === 'gone', {
      what: 'the cancellation',
    });
    await session.delete();
  });

  test('[R7.08] [R7.11] before its answer has begun cancels nothing either, and the answer goes nowhere', async () => {
    const session = await openAt();
    const listener = await session.getStream();
    const agent = new Agent();
    const headers = { Accept: 'application/json', 'Mcp-Session-Id': session.id };
    const waiting = post(gateway.url, toolCall('lost', 'ask_client', { method: 'roots/list' }), headers, agent);
    const question = await listener.nextMessage(({ method }) => method === 'roots/list');
    agent.destroy();
    await expect(waiting).rejects.toThrow();
    expect((await session.respond(question.id, { roots: [] })).status).toBe(202);
    await session.callTool('later', { notification: listChanged });
    await listener.nextMessage(isListChanged);
    expect(listener.events.items.filter(({ data }) => data?.includes('lost'))).toEqual([]);
    listener.drop();
    await session.delete();
  });
});

describe('a cancellation', () => {
  // Not 0: the SDK's server takes a cancellation of request 0 for one without an id; test/core/session has it.
  test.each([[3], ['three'], [-1]])(
    '[R6.10] [R6.13] of request %j reaches the server, and the call ends',
    async (id) => {
      const session = await openAt();
      const call = await session.send(toolCall(id, 'wait_for_cancel', { key: `${id}` }));
      await call.nextMessage(({ method }) => method === 'notifications/message');
      const listener = await session.getStream();
      expect((await session.notify('notifications/cancelled', { requestId: id, reason: 'enough' })).status).toBe(202);
      const { messages } = await call.answer();
      expect(messages.at(-1)).toMatchObject({ id, error: { data: { reason: 'cancelled' } } });
      expect(JSON.parse(await textOf(session, 'cancellations'))).toMatchObject([
        { key: `${id}`, reason: expect.stringContaining('enough') },
      ]);

      // A server that answers and reports all the same is not heard.
      const late = [
        { jsonrpc: '2.0', id, result: { late: true } },
        { jsonrpc: '2.0', id: 'nobody', result: { late: true } },
      ];
      const text = late.map((line) => `${JSON.stringify(line)}\n`).join('');
      const after = await session.request('tools/call', { name: 'raw_write', arguments: { text } }, { id: 'after' });
      expect(after.messages.map((message: Message) => message.id)).toEqual(['after']);
      expect(listener.events.items.filter(({ data }) => data?.includes('late'))).toEqual([]);
      listener.drop();
      await session.delete();
    },
  );

  test('[R6.13] is followed by no progress of the call, neither with another call nor on the GET stream', async () => {
    const session = await openAt();
    const call = await session.send(toolCall(1, 'wait_for_cancel', { key: 'k' }, { progressToken: 'dead' }));
    await call.nextMessage(({ method }) => method === 'notifications/message');
    await session.notify('notifications/cancelled', { requestId: 1 });
    await call.answer();
    const progress = {
      jsonrpc: '2.0',
      method: 'notifications/progress',
      params: { progressToken: 'dead', progress: 9 },
    };
    const args = { text: `${JSON.stringify(progress)}\n` };
    const { messages } = await session.request('tools/call', { name: 'raw_write', arguments: args }, { id: 2 });
    expect(messages.map((message: Message) => message.id)).toEqual([2]);
    await session.delete();
  });

  test('[R6.11] of initialize, or of what was answered, harms nothing', async () => {
    const session = await openAt();
    for (const requestId of [0, 77]) {
      expect((await session.notify('notifications/cancelled', { requestId })).status).toBe(202);
    }
    expect(await textOf(session, 'echo', { text: 'alive' })).toBe('alive');
    await session.delete();
  });
});

describe('requests of the server', () => {
  let session: Session;
  beforeAll(async () => {
    session = await openAt();
  });
  afterAll(async () => void (await session?.delete()));

  const ask = async (exchange: Exchange): Promise<Message> =>
    exchange.nextMessage(({ method }) => method === 'roots/list');

  test('[R7.23] [R7.10] come with their call, and their answer reaches the process that asked', async () => {
    const listener = await session.getStream();
    const other = await openAt();
    const [call, same] = [await session.send(toolCall(1, 'roots')), await other.send(toolCall(1, 'roots'))];
    const [question, sameQuestion] = [await ask(call), await ask(same)];
    // Two processes count their questions alike: what tells the answers apart is the session.
    expect((await session.respond(question.id, { roots: [{ uri: 'file:///1' }] })).status).toBe(202);
    expect((await other.respond(sameQuestion.id, { roots: [{ uri: 'file:///2' }] })).status).toBe(202);
    const texts = [await call.answer(), await same.answer()].map(
      ({ messages }) => messages.at(-1).result.content[0].text,
    );
    expect(texts.map((text) => JSON.parse(text)[0].uri)).toEqual(['file:///1', 'file:///2']);
    expect(listener.events.items.filter(({ data }) => data)).toEqual([]);
    listener.drop();
    await other.delete();
  });

  test('[R7.23] an error as the answer reaches it too', async () => {
    const call = await session.send(toolCall('e', 'ask_client', { method: 'sampling/createMessage' }));
    const question = await call.nextMessage(({ method }) => method === 'sampling/createMessage');
    expect((await session.respondError(question.id, { code: -1, message: 'User said no' })).status).toBe(202);
    expect((await call.answer()).messages.at(-1).result).toMatchObject({
      content: [{ text: expect.stringContaining('User said no') }],
    });
  });

  test('[R7.23] an answer to nothing is accepted and dropped: the server does not hear of it', async () => {
    const own = await openAt();
    for (const id of [0, 1, 'x']) expect((await own.respond(id, { roots: ['stolen'] })).status).toBe(202);
    await own.callTool('later', { request: { method: 'roots/list' } });
    const listener = await own.getStream();
    const question = await ask(listener);
    await own.respond(question.id, { roots: [] });
    await own.respond(question.id, { roots: ['again'] });
    const answers = await waitFor(
      async () => {
        const found = JSON.parse(await textOf(own, 'answers'));
        return found.length > 0 && found;
      },
      { what: 'the answer' },
    );
    expect(answers).toEqual([{ roots: [] }]);
    listener.drop();
    await own.delete();
  });
});
