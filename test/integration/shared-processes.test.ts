import { Agent } from 'node:http';
import { describe, expect, it, onTestFinished } from 'vitest';
import { environmentNumber } from '../support/environment-number.ts';
import { root } from '../support/gateway.ts';
import { type Message, post } from '../support/http-client.ts';
import { keepingFixture, users, usersEnv } from '../support/keepers.ts';
import { startLocalGateway } from '../support/local-gateway.ts';
import { waitFor } from '../support/wait-for.ts';

const shufflingFixture = [process.execPath, `${root}test/fixtures/shuffling-server.mjs`];
/** How many calls are interleaved (`SHARED_CALLS=10000`). */
const calls = environmentNumber('SHARED_CALLS', 600);

const jsonHeaders = { 'MCP-Protocol-Version': '2025-11-25' };

/** Names with which a client could try to be taken for another one. */
const hostileNames = ['alice', 'bob', '","subject":"bob', '__proto__', 'keys\u0000bob', 'alice'];

/** A session with this name. Its calls have the ids and the tokens of all other sessions. */
async function openCaller(url: string, user: keyof typeof users, name: string, agent: Agent) {
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name, version: '1' } };
  const opened = await post(url, { jsonrpc: '2.0', id: 0, method: 'initialize', params }, users[user], agent);
  const headers = { ...users[user], ...jsonHeaders, 'Mcp-Session-Id': opened.headers['mcp-session-id'] };
  await post(url, { jsonrpc: '2.0', method: 'notifications/initialized' }, headers, agent);
  return async (id: number, tag: string): Promise<{ answer: Message; progress: Message[] }> => {
    const meta = { _meta: { progressToken: id } };
    const request = { name: 'echo', arguments: { tag, user }, ...(id % 4 === 0 && meta) };
    const { messages } = await post(url, { jsonrpc: '2.0', id, method: 'tools/call', params: request }, headers, agent);
    const [answer] = messages.filter((message) => message.id !== undefined);
    expect(answer?.id).toBe(id);
    const progress = messages.filter(({ method }) => method === 'notifications/progress');
    return { answer: JSON.parse(answer?.result.content[0].text), progress };
  };
}

async function interleave(share: 'user' | 'all', calls: number) {
  const agent = new Agent({ keepAlive: true, maxSockets: 24 });
  onTestFinished(() => agent.destroy());
  const gateway = await startLocalGateway({
    env: { GANGWAY_SHARE: undefined, ...usersEnv },
    args: ['--share', share],
    command: shufflingFixture,
  });
  const owners = ['alice', 'bob'] as const;
  const open = owners.flatMap((user) =>
    hostileNames.map(async (name) => ({ user, call: await openCaller(gateway.url, user, name, agent) })),
  );
  const sessions = await Promise.all(open);
  const pids = { alice: new Set<number>(), bob: new Set<number>() };
  const seen = { alice: new Set<string>(), bob: new Set<string>() };
  let crossed = 0;
  let reported = 0;
  const callAll = async ({ user, call }: (typeof sessions)[number], session: number): Promise<void> => {
    const count = Math.ceil(calls / sessions.length);
    const turns = Array.from({ length: 2 }, async (_, half) => {
      for (let id = 1 + half; id <= count; id += 2) {
        const tag = `${user}-${session}-${id}`;
        const { answer, progress } = await call(id, tag);
        // Progress that a server reports after its answer may come with another answer of the same session.
        const isForeign = ({ params }: Message) => params.message !== `${user}-${session}-${params.progressToken}`;
        const isCrossed = answer.tag !== tag || progress.some(isForeign);
        reported += progress.length;
        crossed += Number(isCrossed);
        pids[user].add(answer.pid);
        for (const each of answer.users) seen[user].add(each);
      }
    });
    await Promise.all(turns);
  };
  await Promise.all(sessions.map(callAll));
  expect(reported).toBeGreaterThan(calls / 16);
  return { crossed, pids, seen, processes: await gateway.descendants() };
}

describe('sessions that use a process at the same time', () => {
  it(`[P2] [P11] never get a message of another session or user, in ${calls} calls with the same ids and tokens`, async () => {
    const { crossed, pids, seen, processes } = await interleave('user', calls);
    expect(crossed).toBe(0);
    expect([pids.alice.size, pids.bob.size, processes.length]).toEqual([1, 1, 2]);
    expect([...seen.alice, ...seen.bob]).toEqual(['alice', 'bob']);
  }, 240_000);

  it('[P2] never get a message of another session if all users share', async () => {
    const { crossed, pids, processes } = await interleave('all', 1_000);
    expect(crossed).toBe(0);
    expect([new Set([...pids.alice, ...pids.bob]).size, processes.length]).toEqual([1, 1]);
  });

  it('are as many as a hosted client opens: its processes do not grow with its calls', async () => {
    const gateway = await startLocalGateway({
      env: { GANGWAY_SHARE: undefined, ...usersEnv },
      command: [...keepingFixture, '--legacy'],
    });
    const agent = new Agent({ keepAlive: true });
    onTestFinished(() => agent.destroy());
    const callOnce = async (user: keyof typeof users): Promise<void> => {
      const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'hosted', version: '1' } };
      const opened = await post(
        gateway.url,
        { jsonrpc: '2.0', id: 0, method: 'initialize', params },
        users[user],
        agent,
      );
      const headers = { ...users[user], ...jsonHeaders, 'Mcp-Session-Id': opened.headers['mcp-session-id'] };
      await post(gateway.url, { jsonrpc: '2.0', method: 'notifications/initialized' }, headers, agent);
      const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'list_connections' } };
      const { messages } = await post(gateway.url, call, headers, agent);
      expect(messages.find(({ id }) => id === 1)?.result).toBeDefined();
    };
    for (const user of ['alice', 'bob'] as const) await callOnce(user);
    await Promise.all(
      Array.from({ length: 16 }, async (_, client) => {
        for (let count = 0; count < 10; count += 1) await callOnce(client % 2 === 0 ? 'alice' : 'bob');
      }),
    );
    // One process for each user, and the last ones of sessions that opened before the client was known.
    const isFew = async () => (await gateway.descendants()).length <= 4;
    await waitFor(isFew, { what: 'the end of processes that nobody uses' });
  });
});
