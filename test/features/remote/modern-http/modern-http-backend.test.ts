import { once } from 'node:events';
import { describe, expect, test } from 'vitest';
import { waitFor } from '../../../support/wait-for.ts';
import { answerTo, beginStream, cancel, event, json, note } from '../streamable-http/streamable-http-server.ts';
import { ask, discover, openLiveModern, openModern } from './live.ts';

const progress = (progressToken: number) => ({
  jsonrpc: '2.0',
  method: 'notifications/progress',
  params: { progressToken },
});
const mismatch = (id: unknown) => ({ jsonrpc: '2.0', id, error: { code: -32020, message: 'Header mismatch' } });
const tool = (name: string, header?: unknown) => ({
  name,
  inputSchema: {
    type: 'object',
    properties: { a: { type: 'string', ...(header !== undefined && { 'x-mcp-header': header }) } },
  },
});

describe('a request', () => {
  test('[R9.13] goes out with the headers that mirror it, and none of a session', async () => {
    const { server, sendWith, messages } = await openLiveModern(undefined, { headers: { 'X-Own': 'configured' } });
    const call = ask(7, 'prompts/get', { name: 'a ü\nb' });
    sendWith(call, { authorization: 'Bearer x', 'mcp-name': 'forged' });
    await messages.next();
    const { text, request } = await server.posts.next();
    expect(text).toBe(JSON.stringify(call));
    expect(request.headers).toEqual({
      ...{ host: server.url.host, connection: 'keep-alive', 'accept-encoding': 'identity' },
      ...{ 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      ...{ 'content-length': String(Buffer.byteLength(text)), 'x-own': 'configured', authorization: 'Bearer x' },
      ...{ 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'prompts/get', 'mcp-name': '=?base64?YSDDvApi?=' },
    });
    expect(server.requests).toEqual(Array(2).fill('POST /mcp?key=url-secret'));
  });

  test('is answered by JSON or by a stream; each message is told beside it, with its text', async () => {
    const texts = ['{"jsonrpc":"2.0","id":1,"result":{"n":1e2}}', '{ "jsonrpc":"2.0","id":2,\n"result":{"n":1.0}}'];
    const { send, messages, origins } = await openLiveModern(({ message, response }) => {
      if (message.id === 1) {
        beginStream(response).write(`: hi\n\nevent: other\ndata: x\n\n${event(progress(1))}`);
        response.end(`data: ${texts[0]}\n\n`);
      } else response.writeHead(200, { 'content-type': 'application/json; charset=utf-8' }).end(texts[1]);
    });
    send(ask(1));
    expect([await messages.next(), await messages.next()]).toEqual([JSON.stringify(progress(1)), texts[0]]);
    send(ask(2));
    expect(await messages.next()).toBe(texts[1]?.replace('\n', ' '));
    expect(origins).toEqual([[0], [1], [1], [2]]);
  });

  test('does not wait for another one, nor for the end of a stream that has answered', async () => {
    const { send, messages, server } = await openLiveModern(({ message, response }) => {
      if (message.id > 1) beginStream(response).write(event(answerTo(message)));
    });
    for (let id = 1; id <= 40; id++) send(ask(id));
    const ids = [];
    for (let i = 0; i < 39; i++) ids.push(JSON.parse(await messages.next()).id);
    expect(ids.sort((a, b) => a - b)).toEqual(Array.from({ length: 39 }, (_, i) => i + 2));
    expect(server.posts.items).toHaveLength(41);
  });

  test('[R2.27] that is cancelled has its connection closed; nothing is posted, and nothing more told of it', async () => {
    const { send, backend, messages, unanswered, server } = await openLiveModern(({ message, response }) => {
      if (message.id === 1) beginStream(response).write(event(progress(1)));
      else if (message.id !== 2) json(response, answerTo(message));
    });
    send(ask(1));
    send(ask(2));
    await messages.next();
    const posts = [await server.posts.next(), await server.posts.next()];
    const gone = posts.map(({ response }) => once(response, 'close'));
    expect([send(cancel(1)), send(cancel(2)), send(cancel(3))]).toEqual(['sent', 'sent', 'sent']);
    await Promise.all(gone);
    send(ask(3));
    expect(JSON.parse(await messages.next()).id).toBe(3);
    expect([server.posts.items.length, unanswered.items]).toEqual([4, []]);
    await backend.close();
  });

  test('[F28] waits for a server that is away, and is not sent twice', async () => {
    const { send, messages, server } = await openLiveModern();
    await server.stop();
    send(ask(1));
    await server.start();
    expect(JSON.parse(await messages.next()).id).toBe(1);
    expect(server.posts.items).toHaveLength(2);
  });

  test('[P8] is refused while too many bytes, or requests, are unanswered', async () => {
    const { send, messages, server } = await openLiveModern(
      ({ message, response }) => {
        if (message.id === 1) beginStream(response).flushHeaders();
      },
      { maxQueuedBytes: 2_000, maxRequests: 3 },
    );
    const large = (id: number) => ask(id, 'x', { text: 'x'.repeat(1_200) });
    expect(send(large(1))).toBe('sent');
    expect(send(large(2))).toBe('full');
    const { response } = await server.posts.next();
    // It has begun to answer: the bytes count no more.
    await waitFor(() => send(large(2)) === 'sent', { what: 'room for another one' });
    expect([send(ask(3)), send(ask(4))]).toEqual(['sent', 'full']);
    response.end(event(answerTo({ id: 1 })));
    await messages.next();
    expect(send(ask(4))).toBe('sent');
  });
});

describe('a notification', () => {
  test('is posted with its method, and counted if it is not taken', async () => {
    const { send, server, failures } = await openLiveModern(({ message, response }) => {
      response.writeHead(message.method === 'notifications/x' ? 202 : 400).end();
    });
    send(note);
    const { request } = await server.posts.next();
    expect([request.headers['mcp-method'], request.headers['mcp-protocol-version']]).toEqual([
      note.method,
      '2026-07-28',
    ]);
    send({ ...note, method: 'notifications/y' });
    await waitFor(() => failures.length > 0);
    expect(failures).toEqual([expect.stringMatching(/status 400\. 1$/)]);
  });

  test('[R6.02b] a response is never posted', async () => {
    const { send, server, messages } = await openLiveModern();
    expect(send({ jsonrpc: '2.0', id: 1, result: {} })).toBe('sent');
    send(ask(2));
    await messages.next();
    expect(server.posts.items).toHaveLength(2);
  });
});

describe('[R9.13] the parameters of a tool', () => {
  const call = (id: number, name: string) => ask(id, 'tools/call', { name, arguments: { a: 'ü' } });

  test('are mirrored by the list that passed; one before any list has the server asked, once for the credentials of each client', async () => {
    const { send, sendWith, messages, server } = await openLiveModern(({ message, response }) => {
      if (message.method !== 'tools/list') return json(response, answerTo(message));
      const isSecond = message.params.cursor === 'two';
      json(
        response,
        answerTo(message, isSecond ? { tools: [tool('b', 'B')] } : { tools: [tool('a', 'A')], nextCursor: 'two' }),
      );
    });
    sendWith(call(1, 'b'), { authorization: 'Bearer of one' });
    sendWith(call(2, 'a'), { authorization: 'Bearer of two' });
    await messages.next();
    await messages.next();
    send(call(3, 'none'));
    await messages.next();
    const seen = server.posts.items
      .slice(1)
      .map(({ message, request: { headers } }) => [
        message.method === 'tools/list' ? 'list' : message.id,
        headers['mcp-param-a'] ?? headers['mcp-param-b'],
        headers.authorization,
      ]);
    expect(seen).toEqual(
      expect.arrayContaining([
        ['list', undefined, 'Bearer of one'],
        ['list', undefined, 'Bearer of two'],
        ['list', undefined, undefined],
        [1, '=?base64?w7w=?=', 'Bearer of one'],
        [2, '=?base64?w7w=?=', 'Bearer of two'],
        [3, undefined, undefined],
      ]),
    );
    expect(seen).toHaveLength(3 * 2 + 3); // two pages for each
    expect(messages.items.map((text) => JSON.parse(text).id)).toEqual([0, expect.anything(), expect.anything(), 3]);
  });

  test('[R9.08] after a mismatch the list is read anew, and the call repeated if it needs other headers', async () => {
    let header = 'Old';
    const { send, messages, server } = await openLiveModern(({ message, request, response }) => {
      if (message.method === 'tools/list') return json(response, answerTo(message, { tools: [tool('a', header)] }));
      const isFine = `mcp-param-${header.toLowerCase()}` in request.headers && message.params.name === 'a';
      if (isFine) json(response, answerTo(message));
      else response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify(mismatch(message.id)));
    });
    send(ask(1, 'tools/list'));
    await messages.next();
    header = 'New';
    send(call(2, 'a'));
    expect(JSON.parse(await messages.next())).toEqual(answerTo({ id: 2 }));
    send(call(3, 'b'));
    expect(JSON.parse(await messages.next())).toEqual(mismatch(3));
    expect(server.posts.items.filter(({ message }) => message.id === 3)).toHaveLength(1);
  });

  test('tools that break the rules are left out of lists', async () => {
    const { send, messages, hidden } = await openLiveModern(({ message, response }) => {
      const list = answerTo(message, { tools: [tool('good', 'A'), tool('bad', '')] });
      if (message.id === 1) json(response, list);
      else beginStream(response).end(event(list));
    });
    for (const id of [1, 2]) {
      send(ask(id, 'tools/list'));
      expect(JSON.parse(await messages.next()).result.tools).toEqual([tool('good', 'A')]);
    }
    expect(hidden).toEqual(['bad', 'bad']);
  });
});

describe('a subscription', () => {
  const acknowledged = (id: number) => ({
    jsonrpc: '2.0',
    method: 'notifications/subscriptions/acknowledged',
    params: { _meta: { 'io.modelcontextprotocol/subscriptionId': id }, notifications: {} },
  });

  test.each(['ends', 'breaks'])('[R5.09] is opened again when its stream %s, until it has a response', async (how) => {
    let streams = 0;
    const { send, messages, unanswered } = await openLiveModern(({ message, response }) => {
      streams += 1;
      if (streams === 2) return void response.writeHead(503).end();
      beginStream(response).write(event(acknowledged(message.id)), () => {
        if (streams > 2) response.end(event(answerTo(message)));
        else response[how === 'ends' ? 'end' : 'destroy']();
      });
    });
    send(ask(1, 'subscriptions/listen'));
    const kinds = [];
    for (let i = 0; i < 3; i++) kinds.push(JSON.parse(await messages.next()).method);
    expect(kinds).toEqual([acknowledged(1).method, acknowledged(1).method, undefined]);
    expect([streams, unanswered.items]).toEqual([3, []]);
  });

  test('that is refused is not opened again; nor is one that nobody wants any more', async () => {
    let streams = 0;
    const { send, messages, unanswered, server } = await openLiveModern(({ message, response }) => {
      streams += 1;
      if (message.id === 1) response.writeHead(503).end();
      else beginStream(response).write(event(acknowledged(message.id)));
    });
    send(ask(1, 'subscriptions/listen'));
    expect(await unanswered.next()).toEqual({ ids: [1], reason: 'server_refused' });
    send(ask(2, 'subscriptions/listen'));
    await messages.next();
    const [, , { response }] = server.posts.items as [unknown, unknown, { response: NodeJS.EventEmitter }];
    const gone = once(response, 'close');
    send(cancel(2));
    await gone;
    expect(streams).toBe(2);
  });
});

describe('the start and the end', () => {
  test('a server that is not there has not started', async () => {
    const { send, server, end } = await openModern(() => undefined);
    await server.stop();
    send(discover);
    expect(await end()).toMatchObject({ reason: 'failed', detail: expect.stringMatching(/nothing listens there/) });
  });

  test('close cuts what is in flight, and tells the end only', async () => {
    const { send, backend, server, end, unanswered } = await openLiveModern(() => undefined);
    send(ask(1));
    const { response } = await server.posts.next();
    const gone = once(response, 'close');
    await backend.close();
    await gone;
    expect(await end()).toEqual({
      reason: 'closed',
      detail: 'The gateway closed the connection or process of the server.',
    });
    expect([send(ask(2)), unanswered.items]).toEqual(['ended', []]);
  });

  test('[P8] while it is paused nothing is read', async () => {
    const { send, backend, messages, server } = await openLiveModern(({ message, response }) => {
      beginStream(response).end(event(answerTo(message)));
    });
    backend.pause();
    send(ask(1));
    await once((await server.posts.next()).response, 'close');
    expect(messages.items).toHaveLength(1);
    backend.resume();
    expect(JSON.parse(await messages.next()).id).toBe(1);
  });
});
