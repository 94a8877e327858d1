import { chmodSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { initialize, open, post, type Session } from '../support/http-client.ts';
import { initializeRequest } from '../support/old-client.ts';
import { waitForDescendants } from '../support/processes.ts';
import { waitFor } from '../support/wait-for.ts';
import {
  hanging,
  logged,
  type Moody,
  makeFolder,
  moodyFile,
  requestOf,
  responseOf,
  restored,
  startMoody,
  statusOf,
  toolCall,
} from './moody.ts';

const rss = async (pid: number): Promise<number> => {
  const { readFile } = await import('node:fs/promises');
  return Number(/VmRSS:\s+(\d+)/.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
};

const methodsOf = (messages: readonly { method?: string }[] | undefined): (string | undefined)[] =>
  (messages ?? []).map(({ method }) => method);

const ask = async (session: Session, as: string | number, id: string | number) => {
  const exchange = await session.send(toolCall(id, 'ask', { as }));
  const question = await exchange.nextMessage(({ method }) => method === 'elicitation/create');
  return { exchange, question };
};

describe('a new process in place of a lost one', () => {
  test('[F12] [R6.15b] is told what the client had told the lost one: initialize, initialized, log level, subscriptions', async () => {
    const moody = await startMoody();
    const session = await initialize(moody.gateway.url, { capabilities: { roots: {}, x: { big: 1e15 } } });
    await session.request('logging/setLevel', { level: 'debug' });
    await session.request('logging/setLevel', { level: 'error' });
    for (const uri of ['a:1', 'a:2', 'a:3']) await session.request('resources/subscribe', { uri });
    await session.request('resources/unsubscribe', { uri: 'a:2' });
    moody.kill();
    await restored(moody.gateway);
    const [before = [], after = []] = [moody.told()[0], await moody.toldBy(1, 5)];
    expect(after[0]).toEqual(before[0]);
    expect(after[1]).toEqual({ jsonrpc: '2.0', method: 'notifications/initialized' });
    expect(after.slice(2).map(({ method, params }) => [method, params])).toEqual([
      ['logging/setLevel', { level: 'error' }],
      ['resources/subscribe', { uri: 'a:1' }],
      ['resources/subscribe', { uri: 'a:3' }],
    ]);
    // The answers to what the gateway said in the client's place are nobody else's.
    const get = await session.getStream();
    await session.request('x');
    get.drop();
    expect(moody.told()).toHaveLength(2);
    expect(get.events.items.filter(({ data }) => data !== '')).toEqual([]);
    await session.delete();
    expect(await logged(moody.gateway, 'session ended')).toEqual([
      expect.not.objectContaining({ unknown_response: expect.anything() }),
    ]);
  });

  test('[F12] is told of the same again when it is lost too', async () => {
    const moody = await startMoody();
    const session = await initialize(moody.gateway.url);
    await session.request('logging/setLevel', { level: 'debug' });
    for (let run = 1; run <= 3; run++) {
      moody.kill();
      await restored(moody.gateway, run);
      expect(methodsOf(await moody.toldBy(run, 3))).toEqual([
        'initialize',
        'notifications/initialized',
        'logging/setLevel',
      ]);
    }
    expect(await statusOf(session)).toBe(200);
  });

  test('[F12] is told once that the client is initialized, if the client says so while it starts', async () => {
    const moody = await startMoody({ later: { startMs: 300 } });
    const { open } = await import('../support/http-client.ts');
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 't', version: '1' } };
    const headers = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };
    const opened = await open(moody.gateway.url, {
      headers,
      body: { jsonrpc: '2.0', id: 0, method: 'initialize', params },
    });
    await opened.answer();
    moody.kill();
    await logged(moody.gateway, 'server ended');
    const inSession = { ...headers, 'Mcp-Session-Id': String(opened.headers['mcp-session-id']) };
    const say = async (body: object) => (await open(moody.gateway.url, { headers: inSession, body })).answer();
    await say({ jsonrpc: '2.0', method: 'notifications/initialized' });
    await say({ jsonrpc: '2.0', id: 1, method: 'x' });
    expect(methodsOf(moody.told()[1])).toEqual(['initialize', 'notifications/initialized', 'x']);
  });

  test('[F12] is announced by list_changed on the GET stream, where it is declared and only there', async () => {
    const capabilities = { tools: { listChanged: true }, prompts: {}, resources: { listChanged: true } };
    const moody = await startMoody({ capabilities });
    const session = await initialize(moody.gateway.url);
    const get = await session.getStream();
    moody.kill();
    await get.nextMessage(({ method }) => method === 'notifications/tools/list_changed');
    await get.nextMessage(({ method }) => method === 'notifications/resources/list_changed');
    await session.request('x');
    expect(get.events.items.filter(({ data }) => data?.includes('list_changed'))).toHaveLength(2);
  });

  test('[F12] gets messages that came while it started, in order, behind what it is told', async () => {
    const moody = await startMoody({ later: { startMs: 400 } });
    const session = await initialize(moody.gateway.url);
    const early = await session.send(requestOf('early', 'tools/list', {}, { hangsUntil: 1 }));
    moody.kill();
    await logged(moody.gateway, 'server ended');
    const calls = [];
    for (let n = 0; n < 10; n++) {
      calls.push(session.send(toolCall(n, 'x')));
      await session.notify('notifications/x', { n });
    }
    for (const [n, call] of calls.entries()) expect(await responseOf(call, n)).toMatchObject({ result: { run: 1 } });
    expect(await responseOf(early, 'early')).toMatchObject({ result: { run: 1 } });
    const told = (await moody.toldBy(1, 3 + 2 * 10)).map(({ method, id, params }) => id ?? params?.n ?? method);
    expect(told.slice(0, 3)).toEqual([0, 'notifications/initialized', 'early']);
    expect([...told.slice(3)].sort()).toEqual([...Array(10).keys(), ...Array(10).keys()].sort());
    const notes = (moody.told()[1] ?? []).filter(({ method }) => method === 'notifications/x');
    expect(notes.map(({ params }) => params.n)).toEqual([...Array(10).keys()]);
  });

  test('[F12] [P8] that floods before it answers initialize does not fill the memory', async () => {
    const moody = await startMoody({ later: { floods: 400e6 } }, { args: ['--defaults.timeouts.start', '20s'] });
    const session = await initialize(moody.gateway.url);
    const before = await rss(moody.gateway.pid);
    moody.kill();
    let most = 0;
    const isOver = (): boolean =>
      moody.gateway.logs().some(({ msg }) => msg === 'server restored' || msg === 'session ended');
    await waitFor(
      async () => {
        most = Math.max(most, (await rss(moody.gateway.pid)) - before);
        return isOver() || most > 150;
      },
      { what: 'the end of the flood', deadlineMs: 30_000 },
    );
    expect(most).toBeLessThan(150);
    await session.delete();
  });
});

describe('requests of the server, over the loss of their process', () => {
  test('[F12] [P3] those that are open are cancelled towards the client, on the stream where they came', async () => {
    const moody = await startMoody();
    const session = await initialize(moody.gateway.url, { capabilities: { elicitation: {} } });
    const { exchange } = await ask(session, 'q1', 1);
    moody.kill();
    const { messages } = await exchange.answer();
    expect(messages).toMatchObject([
      { id: 'q1', method: 'elicitation/create' },
      { method: 'notifications/cancelled', params: { requestId: 'q1' } },
      { id: 1, error: { data: { reason: 'server_exited' } } },
    ]);
  });

  test('[F12] an answer to the lost process is accepted and dropped; the new one gets its own, by its own ids', async () => {
    const moody = await startMoody();
    const session = await initialize(moody.gateway.url, { capabilities: { elicitation: {} } });
    const first = await ask(session, 7, 1);
    expect(first.question.id).toBe(7);
    moody.kill();
    await responseOf(first.exchange, 1);
    await restored(moody.gateway);
    const second = await ask(session, 7, 2);
    expect(second.question).toMatchObject({ method: 'elicitation/create', params: { message: 'Well?' } });
    expect(second.question.id).not.toBe(7);

    expect(await session.respond(7, { action: 'late' })).toMatchObject({ status: 202, text: '' });
    expect((await session.respond(second.question.id, { action: 'accept' })).status).toBe(202);
    expect(await responseOf(second.exchange, 2)).toMatchObject({ result: { run: 1, answer: { action: 'accept' } } });
    const answers = moody.told()[1]?.filter(({ method }) => method === undefined);
    expect(answers).toEqual([{ jsonrpc: '2.0', id: 7, result: { action: 'accept' } }]);

    moody.kill();
    await restored(moody.gateway, 2);
    const third = await ask(session, 7, 3);
    expect([7, second.question.id]).not.toContain(third.question.id);
    await session.delete();
    expect(await logged(moody.gateway, 'session ended')).toMatchObject([{ unknown_client_response: 1 }]);
  });
});

describe('a session whose server cannot be restored', () => {
  test.each([
    ['another revision', { version: '2025-06-18' }],
    ['fewer capabilities', { capabilities: { tools: {} } }],
    ['a capability less far', { capabilities: { tools: {}, resources: { subscribe: false } } }],
  ])('[F12] [P3] ends when the new process has %s', async (_, later) => {
    const capabilities = { tools: {}, resources: { subscribe: true } };
    const moody = await startMoody({ capabilities, later });
    const session = await initialize(moody.gateway.url);
    const get = await session.getStream();
    const call = await session.send(requestOf(1, 'tools/list', {}, hanging));
    moody.kill();
    expect(await responseOf(call, 1)).toMatchObject({ error: { data: { reason: 'server_exited' } } });
    await get.events.ended;
    expect(await statusOf(session)).toBe(404);
    expect(await logged(moody.gateway, 'session ended')).toMatchObject([{ reason: 'server_changed' }]);
    await waitForDescendants(moody.gateway.pid, 0);
  });

  test('[F12] goes on when the new process has more capabilities', async () => {
    const moody = await startMoody({
      capabilities: { tools: {} },
      later: { capabilities: { tools: {}, prompts: {} } },
    });
    const session = await initialize(moody.gateway.url);
    moody.kill();
    await restored(moody.gateway);
    expect(await statusOf(session)).toBe(200);
  });

  test('[F12] [S-05] capabilities that are nested a hundred thousand deep do not end the gateway', async () => {
    const moody = await startMoody({ nested: 100_000 });
    for (let n = 0; n < 2; n++) {
      const { json } = await post(moody.gateway.url, initializeRequest('2025-11-25'));
      expect(json.error.data.reason).toBe('response_too_complex');
    }
    expect((await open(`${moody.gateway.baseUrl}/healthz`, { method: 'GET' })).status).toBe(200);
  });

  test('[F12] [P3] in a crash loop ends with 404, its calls answered, and others are not touched', async () => {
    const moody = await startMoody();
    const honest = await initialize(moody.gateway.url);
    const pid = moody.pids()[0] as number;
    const looping = await initialize(moody.gateway.url);
    const call = await looping.send(requestOf(1, 'tools/list', {}, hanging));
    for (let n = 1; n <= 6; n++) {
      await moody.toldBy(n, 2);
      const at = moody.pids()[n] as number;
      process.kill(at, 'SIGKILL');
      await logged(moody.gateway, 'server ended', n);
      if (n < 6) await waitFor(() => moody.pids()[n + 1], { what: 'the next process' });
    }
    expect(await responseOf(call, 1)).toMatchObject({ error: { data: { reason: 'server_exited' } } });
    expect(await statusOf(looping)).toBe(404);
    expect((await honest.request('x')).messages[0].result.pid).toBe(pid);
    expect(await logged(moody.gateway, 'session ended')).toMatchObject([{ reason: 'crash_loop' }]);
    await waitForDescendants(moody.gateway.pid, 1);
  });
});

describe('a program that is gone when it is needed again', () => {
  /** A program of the test's own, which can be renamed. */
  function makeProgram(folder: string): string {
    const program = join(folder, 'server');
    writeFileSync(program, `#!/bin/sh\nexec '${process.execPath}' '${moodyFile}' "$@"\n`);
    chmodSync(program, 0o755);
    symlinkSync(program, join(folder, 'link'));
    return program;
  }
  const start = async (): Promise<{ moody: Moody; program: string }> => {
    const folder = makeFolder();
    const program = makeProgram(folder);
    return { moody: await startMoody({}, { command: [program], folder }), program };
  };

  test('[F12] [P3] for a while: calls wait and the session goes on', async () => {
    const { moody, program } = await start();
    const session = await initialize(moody.gateway.url);
    renameSync(program, `${program}.away`);
    moody.kill();
    await logged(moody.gateway, 'server ended');
    const call = session.send(toolCall(1, 'x'));
    await new Promise((resolve) => setTimeout(resolve, 600)); // the time that it is away
    renameSync(`${program}.away`, program);
    expect(await responseOf(call, 1)).toMatchObject({ result: { run: 1 } });
    expect(await statusOf(session)).toBe(200);
  });

  test('[F12] [P3] for good: calls are answered and the session ends', async () => {
    const { moody, program } = await start();
    const session = await initialize(moody.gateway.url);
    renameSync(program, `${program}.away`);
    moody.kill();
    const call = session.send(toolCall(1, 'x'));
    expect(await responseOf(call, 1)).toMatchObject({ error: { data: { reason: 'server_exited' } } });
    await logged(moody.gateway, 'session ended');
    expect(await statusOf(session)).toBe(404);
  });
});
