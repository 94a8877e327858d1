import { describe, expect, it, onTestFinished } from 'vitest';
import { modernFixture, startGateway } from '../support/gateway.ts';
import { initialize } from '../support/http-client.ts';
import { startLocalGateway } from '../support/local-gateway.ts';
import { callModern, metaKeys, openModern, postModern } from '../support/modern-client.ts';
import { crowd, expectNoneCrossesOver } from '../support/modern-crowd.ts';
import { waitForDescendants } from '../support/processes.ts';
import { waitFor } from '../support/wait-for.ts';
import { modernHttpKinds, type ServerKind } from './server-kinds.ts';

const optionsOf = (...args: string[]) => ({ command: modernFixture, args: ['--era', 'modern', ...args] });
const start = (...args: string[]) => startLocalGateway(optionsOf(...args));
const pidOf = async (url: string): Promise<number> => {
  const { json } = await callModern(url, 'describe_process');
  return JSON.parse(json.result.content[0].text).pid;
};
const listen = (url: string, notifications: object, id: unknown = 'l') =>
  openModern(url, 'subscriptions/listen', { notifications }, { id });

describe('many clients of one modern server', () => {
  const kinds: readonly Pick<ServerKind, 'name' | 'ready'>[] = [
    { name: 'one process', ready: async () => ({ args: [], command: modernFixture, stop: async () => undefined }) },
    ...modernHttpKinds.slice(0, 1),
  ];

  it.each(kinds)(
    `[R6.08] [P11] ${crowd} interleaved ones with the same ids and tokens on $name: no message crosses over`,
    async ({ ready }) => {
      const { args, command, stop } = await ready();
      onTestFinished(stop);
      const gateway = await startLocalGateway({ args: [...args, '--era', 'modern'], command });
      await expectNoneCrossesOver(gateway.url);
      await waitForDescendants(gateway, command.length > 0 ? 1 : 0);
    },
  );

  it('share one process, which is there before the first of them', async () => {
    const gateway = await start();
    const [first] = await gateway.descendants();
    const pids = await Promise.all(Array.from({ length: 5 }, () => pidOf(gateway.url)));
    expect(new Set(pids)).toEqual(new Set([first?.pid]));
    expect((await gateway.descendants()).map(({ pid }) => pid)).toEqual([pids[0]]);
  });
});

describe('a client of a modern server that leaves', () => {
  it('[R2.27] [R9.07] [R6.10] has its call cancelled at the server', async () => {
    const gateway = await start();
    const meta = { [metaKeys.logLevel]: 'debug' };
    const call = { name: 'wait_for_cancel', arguments: { key: 'k' } };
    const exchange = await openModern(gateway.url, 'tools/call', call, { meta });
    expect(await exchange.nextMessage()).toMatchObject({ params: { data: 'waiting k' } });
    exchange.drop();
    const cancelled = await waitFor(
      async () => {
        const { json } = await callModern(gateway.url, 'cancellations');
        return JSON.parse(json.result.content[0].text)[0];
      },
      { what: 'the cancellation to reach the server' },
    );
    expect(cancelled.key).toBe('k');
  });

  it('[R5.08] has its subscription closed at the server', async () => {
    const gateway = await start('--log-level', 'debug');
    const first = await listen(gateway.url, { toolsListChanged: true });
    await first.nextMessage();
    first.drop();
    const second = await listen(gateway.url, { toolsListChanged: true });
    await second.nextMessage();
    await callModern(gateway.url, 'test_trigger_tool_change');
    await second.nextMessage();
    // What came for the one that left would have been dropped as late.
    const late = gateway.logs().filter(({ msg, what }) => msg === 'message dropped' && what === 'late');
    expect(late).toEqual([]);
  });
});

describe('subscriptions', () => {
  it.each(['l', 7, '7', 0])(
    '[R5.01] [R5.02] [R9.03] under the id %j: acknowledged first, then what changes',
    async (id) => {
      const gateway = await start();
      const uri = 'test://watched-resource';
      const stream = await listen(gateway.url, { toolsListChanged: true, resourceSubscriptions: [uri] }, id);
      expect(stream.headers['content-type']).toBe('text/event-stream');
      expect(await stream.nextMessage()).toEqual({
        jsonrpc: '2.0',
        method: 'notifications/subscriptions/acknowledged',
        params: {
          _meta: { [metaKeys.subscriptionId]: id },
          notifications: { toolsListChanged: true, resourceSubscriptions: [uri] },
        },
      });
      await callModern(gateway.url, 'test_trigger_prompt_change'); // not asked for
      await callModern(gateway.url, 'change_list', { what: 'tools' });
      await callModern(gateway.url, 'update_resource', { uri });
      for (const method of ['notifications/tools/list_changed', 'notifications/resources/updated']) {
        const message = await stream.nextMessage();
        expect(message.method).toBe(method);
        expect(message.params._meta[metaKeys.subscriptionId]).toBe(id);
      }
      expect(stream.events.items).toHaveLength(3);
      stream.drop();
    },
  );

  it('[R5.05] progress and log messages of calls beside it never go there', async () => {
    const gateway = await start();
    const stream = await listen(gateway.url, { toolsListChanged: true });
    const meta = { progressToken: 'l', [metaKeys.logLevel]: 'debug' };
    await callModern(gateway.url, 'progress', { count: 3, marker: 'm' }, { id: 'l', meta });
    await callModern(gateway.url, 'logs', { count: 3 }, { meta });
    await callModern(gateway.url, 'test_trigger_tool_change');
    await stream.nextMessage(({ method }) => method === 'notifications/tools/list_changed');
    expect(stream.events.items).toHaveLength(2);
    stream.drop();
  });

  it('[R5.09] [R6.14] go on when the process is lost', async () => {
    const gateway = await start();
    const stream = await listen(gateway.url, { toolsListChanged: true });
    await stream.nextMessage();
    const before = await pidOf(gateway.url);
    const { status, json } = await callModern(gateway.url, 'exit', { code: 3 });
    expect({ status, reason: json.error.data.reason }).toEqual({ status: 502, reason: 'server_exited' });
    expect(await pidOf(gateway.url)).not.toBe(before);
    const changed = {
      method: 'notifications/tools/list_changed',
      params: { _meta: { [metaKeys.subscriptionId]: 'l' } },
    };
    expect(await stream.nextMessage()).toMatchObject(changed); // it may have, meanwhile
    await callModern(gateway.url, 'test_trigger_tool_change');
    expect(await stream.nextMessage()).toMatchObject(changed);
    expect(stream.events.items).toHaveLength(3);
    stream.drop();
  });

  it('[R5.07] [R2.28] [F27] end with a result when the gateway ends, and have comments while they are silent', async () => {
    const gateway = await startGateway(optionsOf('--sse.heartbeat', '50ms'));
    const stream = await listen(gateway.url, { toolsListChanged: true });
    await stream.comments.next();
    const call = postModern(gateway.url, 'tools/call', { name: 'slow', arguments: { ms: 500 } });
    await stream.nextMessage();
    await callModern(gateway.url, 'echo');
    const stopped = gateway.stop();
    expect((await stream.answer()).messages.at(-1)).toEqual({
      jsonrpc: '2.0',
      id: 'l',
      result: { resultType: 'complete', _meta: { [metaKeys.subscriptionId]: 'l' } },
    });
    expect((await call).messages.at(-1)).toMatchObject({ result: { content: [{ text: 'slept 500 ms' }] } });
    expect(await stopped).toEqual({ code: 0, signal: null });
  });
});

describe('a process that is lost', () => {
  it('[P3] [F12] every call of it is answered at once, and the next request has another', async () => {
    const gateway = await start();
    const calls = Array.from({ length: 20 }, () => callModern(gateway.url, 'slow', { ms: 60_000 }));
    await callModern(gateway.url, 'echo');
    const [{ pid = 0 } = {}] = await gateway.descendants();
    process.kill(pid, 'SIGKILL');
    const answers = await Promise.all(calls);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([502]));
    expect((await postModern(gateway.url, 'tools/list')).json.result.tools.length).toBeGreaterThan(1);
    const { dropped, ...ended } = gateway.logs().find(({ msg }) => msg === 'shared server ended') ?? {};
    expect(ended).toMatchObject({ signal: 'SIGKILL', inFlight: 20, runAgain: 0 });
  });
});

describe('both eras at once', () => {
  it('[R1.01] [R1.06] [R9.10] on one URL: a session has its own process, modern requests share another', async () => {
    const gateway = await startLocalGateway({ command: [...modernFixture, '--dual'] });
    const session = await initialize(gateway.url);
    const [own, shared] = [
      JSON.parse((await session.callTool('describe_process')).content[0].text).pid,
      await pidOf(gateway.url),
    ];
    expect(own).not.toBe(shared);
    const headers = { 'Mcp-Session-Id': session.id };
    const { json } = await callModern(gateway.url, 'describe_process', {}, { headers });
    expect(JSON.parse(json.result.content[0].text).pid).toBe(shared);
    const [legacy, modern] = await Promise.all([
      session.request('tools/list', {}, { id: 1 }),
      postModern(gateway.url, 'tools/list', {}, { id: 1 }),
    ]);
    expect(legacy.messages[0].result.resultType).toBeUndefined();
    expect(modern.json.result.resultType).toBe('complete');
    await session.delete();
    expect(await pidOf(gateway.url)).toBe(shared);
  });

  it('[R2.19] a legacy message with the headers of the modern era that do not fit it is served', async () => {
    const gateway = await startLocalGateway({ command: [...modernFixture, '--dual'] });
    const session = await initialize(gateway.url);
    const headers = { 'Mcp-Method': 'x', 'Mcp-Name': '=?base64?%?=', 'Mcp-Param-Region': 'y' };
    const call = { name: 'test_x_mcp_header', arguments: { region: 'us' } };
    const { messages } = await session.request('tools/call', call, { headers });
    expect(messages[0].result.content[0].text).toBe('region=us');
  });
});
