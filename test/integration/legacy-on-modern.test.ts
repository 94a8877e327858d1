import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Gateway, modernFixture, root, startGateway } from '../support/gateway.ts';
import { initialize, type Message, type Session } from '../support/http-client.ts';
import { connectModernSdk } from '../support/modern-sdk-client.ts';
import { waitForDescendants } from '../support/processes.ts';
import { answers, connectV1 } from '../support/sdk-clients.ts';
import { waitFor } from '../support/wait-for.ts';

/** Clients of the legacy era in front of a server that serves none: what a session has is made of what the server has. */

let gateway: Gateway;
beforeAll(async () => {
  gateway = await startGateway({ command: modernFixture });
});
afterAll(async () => void (await gateway?.stop()));

test('[R4.12] several questions at once, ten rounds of them, and those of a prompt', async () => {
  await using client = await connectModernSdk(gateway.url, 'legacy');
  expect(client.client.getNegotiatedProtocolVersion()).toBe('2025-11-25');
  expect(await client.callTool('test_input_required_result_multiple_inputs')).toBe(
    `${answers.sample} ada with 1 roots`,
  );
  expect(await client.callTool('rounds', { count: 9 })).toBe('1,2,3,4,5,6,7,8,9');
  const { messages } = await client.client.getPrompt({ name: 'test_input_required_result_prompt' });
  expect(JSON.stringify(messages)).toContain('In this context: tests');
});

const call = (id: number, name: string, args: object = {}, _meta: object = {}) => ({
  ...{ jsonrpc: '2.0', id, method: 'tools/call' },
  params: { name, arguments: args, _meta },
});
const capabilities = { sampling: {}, roots: {}, elicitation: {} };
const textIn = (message: Message): string => message.result.content[0].text;

test('[R1.06] both eras at the same time on one URL, with one process', async () => {
  await using modern = await connectModernSdk(gateway.url, 'auto');
  await using legacy = await connectV1(gateway.url);
  expect(legacy.protocolVersion).toBe('2025-11-25');
  const [old, young] = await Promise.all([
    legacy.callTool('test_sampling', { prompt: 'Say it' }),
    modern.callTool('test_input_required_result_list_roots'),
  ]);
  expect(old).toContain(answers.sample);
  expect(young).toBe(JSON.stringify(answers.roots));
  await waitForDescendants(gateway.pid, 1);
});

describe('a question in the middle of a call', () => {
  /** A call that has asked its client. */
  async function ask(session: Session, id = 1) {
    const exchange = await session.send(call(id, 'test_input_required_result_elicitation'));
    const question = await exchange.nextMessage(({ method }) => method === 'elicitation/create');
    return { exchange, question };
  }

  test('[R4.13] that the client cannot be asked is an error', async () => {
    const session = await initialize(gateway.url);
    const { json } = await session.request('tools/call', { name: 'test_sampling', arguments: { prompt: 'x' } });
    expect(json.error).toMatchObject({ code: -32600, data: { requiredCapabilities: { sampling: {} } } });
  });

  test('[R4.13] [P3] that the client refuses ends the call', async () => {
    const session = await initialize(gateway.url, { capabilities });
    const { exchange, question } = await ask(session);
    await session.respondError(question.id, { code: -32603, message: 'no' });
    const { messages } = await exchange.answer();
    expect(messages.at(-1)).toMatchObject({ id: 1, error: { data: { reason: 'input_refused' } } });
  });

  test('is withdrawn when the client cancels the call', async () => {
    const session = await initialize(gateway.url, { capabilities });
    const { exchange, question } = await ask(session);
    await session.notify('notifications/cancelled', { requestId: 1 });
    await exchange.nextMessage(({ params }) => params?.requestId === question.id);
    exchange.drop();
  });

  test('[P4] outlives the connection: the call goes on where it was cut', async () => {
    const session = await initialize(gateway.url, { capabilities });
    const { exchange, question } = await ask(session);
    const { id } = exchange.events.items.findLast(({ id: seen }) => seen !== undefined) ?? {};
    exchange.drop();
    await session.respond(question.id, { action: 'accept', content: { name: 'bea' } });
    const { messages } = await (await session.getStream(id)).answer();
    expect(messages.map(textIn)).toEqual(['Hello, bea!']);
  });
});

test('[P2] [P11] a hundred sessions with the same ids and tokens: nothing crosses over', async () => {
  const sessions = await Promise.all(Array.from({ length: 100 }, () => initialize(gateway.url, { capabilities })));
  await Promise.all(
    sessions.map(async (session, who) => {
      const marker = `session ${who}`;
      const [asking, working] = await Promise.all([
        session.send(call(1, 'test_input_required_result_elicitation')),
        session.send(call(2, 'progress', { count: 3, gapMs: 1, marker }, { progressToken: 1 })),
      ]);
      const question = await asking.nextMessage(({ method }) => method === 'elicitation/create');
      await session.respond(question.id, { action: 'accept', content: { name: marker } });
      const [asked, worked] = await Promise.all([asking.answer(), working.answer()]);
      expect(asked.messages.at(-1)).toMatchObject({ id: 1 });
      expect(textIn(asked.messages.at(-1))).toBe(`Hello, ${marker}!`);
      expect(worked.messages.map(({ id, params }) => id ?? params)).toEqual([
        ...[1, 2, 3].map((progress) => ({ progressToken: 1, progress, total: 3, message: marker })),
        2,
      ]);
      await session.delete();
    }),
  );
});

test('[P3] the end of the process costs what was in flight, and no session', async () => {
  const session = await initialize(gateway.url);
  const listening = await session.getStream();
  const uri = 'test://watched-resource';
  expect((await session.request('resources/subscribe', { uri })).json.result).toEqual({});
  await session.request('logging/setLevel', { level: 'debug' });
  const held = await session.send(call(77, 'wait_for_cancel', { key: 'k' }));
  await held.nextMessage(({ method }) => method === 'notifications/message');
  const [server] = await gateway.descendants();
  process.kill(server?.pid as number, 'SIGKILL');
  const { messages } = await held.answer();
  expect(messages.at(-1)).toMatchObject({ id: 77, error: { data: { reason: 'server_exited' } } });
  await listening.nextMessage(({ params }) => params?.uri === uri); // it may have changed meanwhile
  expect(await session.callTool('update_resource', { uri })).toMatchObject({ content: [{ text: 'told' }] });
  await waitFor(() => listening.events.items.filter(({ data }) => data?.includes(uri)).length >= 2, {
    what: 'the update to be told',
  });
  await waitForDescendants(gateway.pid, 1);
  listening.drop();
});

test('[R9.11b] a server that is said to be modern is started once, for all', async () => {
  await using forced = await startGateway({ command: modernFixture, args: ['--era', 'modern'] });
  const [one, two] = await Promise.all([initialize(forced.url), initialize(forced.url)]);
  expect(one.initialized.serverInfo.name).toBe('modern-fixture');
  const pids = await Promise.all(
    [one, two].map(async (session) => textIn({ result: await session.callTool('describe_process') })),
  );
  expect(pids[0]).toBe(pids[1]);
  await waitForDescendants(forced.pid, 1);
});

test('[R9.11b] a modern server that says nothing to initialize is found out and translated', async () => {
  const silent = await startGateway({
    command: [process.execPath, `${root}test/fixtures/children/silent-on-initialize.mjs`],
    args: ['--defaults.timeouts.start', '3s'],
  });
  const pids = new Set<string>();
  for (let n = 0; n < 3; n++) pids.add((await (await initialize(silent.url)).callTool('pid')).content[0].text);
  expect(pids.size).toBe(1);
});

test('the log of a translated session says what went wrong with its server', async () => {
  const broken = await startGateway({
    command: [process.execPath, `${root}test/fixtures/children/mini-server.mjs`],
    args: ['--era', 'modern'],
  });
  await expect(initialize(broken.url)).rejects.toThrow('server_not_modern');
  const { detail } = (await waitFor(
    () => broken.logs().find(({ msg, session }) => msg === 'server ended' && session !== undefined),
    { what: 'the end in the log' },
  )) as { detail: string };
  expect(detail).toContain('did not answer server/discover as protocol version 2026-07-28 requires');
});
