import type { OutgoingHttpHeaders } from 'node:http';
import { describe, expect, it } from 'vitest';
import { initialize, type Session } from '../support/http-client.ts';
import { type Kept, keepingFixture, modernKeeper, users, usersEnv } from '../support/keepers.ts';
import { type LocalGateway, startLocalGateway } from '../support/local-gateway.ts';
import { connectOld } from '../support/old-client.ts';
import { waitFor } from '../support/wait-for.ts';

const start = (args: readonly string[] = [], env: Readonly<Record<string, string>> = usersEnv) =>
  startLocalGateway({
    env: { GANGWAY_SHARE: undefined, ...env },
    args: ['--observe.logFormat', 'json', ...args],
    command: [...keepingFixture, '--legacy'],
  });

const listIn = async (session: Session): Promise<Kept> =>
  JSON.parse((await session.callTool('list_connections')).content[0].text);

/** A client that is known to open a session for each call. */
const clientInfo = { name: 'openai-mcp', version: '1' };

/** One call of a hosted client: a session of its own, which the client never ends. */
async function hostedCall({ url }: LocalGateway, headers: OutgoingHttpHeaders, connection?: string): Promise<Kept> {
  const session = await initialize(url, { headers, clientInfo });
  if (connection !== undefined) await session.callTool('connect', { name: connection });
  return await listIn(session);
}

describe('a client that opens a session for each call', () => {
  it('[M-05] meets the state that it left, and never that of another user', async () => {
    const gateway = await start();
    const { pid } = await hostedCall(gateway, users.alice, 'a1');
    expect(await hostedCall(gateway, users.bob, 'b1')).toMatchObject({ connections: ['b1'] });
    expect(await hostedCall(gateway, users.alice, 'a2')).toMatchObject({ connections: ['a1', 'a2'], pid });
    expect(await hostedCall(gateway, users.bob)).toMatchObject({ connections: ['b1'] });
    expect(await gateway.descendants()).toHaveLength(2);
  });

  it('[P11] and others at the same time, of two users with the same ids and names, never meet the other user', async () => {
    const gateway = await start();
    const calls = 400;
    const seen = new Set<number>();
    const owners = new Map<number, string>();
    let next = 0;
    const callOn = async (user: 'alice' | 'bob'): Promise<void> => {
      while (next < calls) {
        next += 1;
        const { connections, pid } = await hostedCall(gateway, users[user], user);
        expect(new Set(connections)).toEqual(new Set([user]));
        expect(owners.get(pid) ?? user).toBe(user);
        owners.set(pid, user);
        seen.add(pid);
      }
    };
    await Promise.all(Array.from({ length: 16 }, (_, client) => callOn(client % 2 === 0 ? 'alice' : 'bob')));
    // As many processes as clients call at once, and a few for sessions that opened in the same moment.
    expect(seen.size).toBeLessThanOrEqual(32);
  });

  it('meets its state after DELETE, until its session would be idle', async () => {
    const gateway = await start(['--session-idle', '1500ms']);
    const first = await initialize(gateway.url, { headers: users.alice, clientInfo });
    await first.callTool('connect', { name: 'a1' });
    await first.delete();
    const second = await initialize(gateway.url, { headers: users.alice, clientInfo });
    expect(await listIn(second)).toMatchObject({ connections: ['a1'] });
    await second.delete();
    await waitFor(async () => (await gateway.descendants()).length === 0, { what: 'the end of the kept process' });
  });

  it('gets its process back when it returns to an earlier session', async () => {
    const gateway = await start();
    const first = await initialize(gateway.url, { headers: users.alice, clientInfo });
    await first.callTool('connect', { name: 'a1' });
    const { pid } = await hostedCall(gateway, users.alice, 'a2');
    expect(await listIn(first)).toMatchObject({ connections: ['a1', 'a2'], pid });
  });

  it('has one process also for calls at the same time, while it listens', async () => {
    const gateway = await start();
    const first = await initialize(gateway.url, { headers: users.alice, clientInfo });
    await first.getStream();
    await first.callTool('connect', { name: 'a1' });
    expect(await hostedCall(gateway, users.alice, 'a2')).toMatchObject({ connections: ['a1', 'a2'] });
    expect(await listIn(first)).toMatchObject({ connections: ['a1', 'a2'] });
  });

  it('leaves the process to its next session when it has closed the stream', async () => {
    const gateway = await start();
    const first = await initialize(gateway.url, { headers: users.alice, clientInfo });
    const stream = await first.getStream();
    await first.callTool('connect', { name: 'a1' });
    stream.drop();
    await listIn(first); // by its answer, the gateway has noticed the end of the stream
    expect(await hostedCall(gateway, users.alice)).toMatchObject({ connections: ['a1'] });
  });

  it('has a process for each session with --share session', async () => {
    const gateway = await start(['--share', 'session']);
    const first = await initialize(gateway.url, { headers: users.alice, clientInfo });
    await first.callTool('connect', { name: 'a1' });
    await first.delete();
    expect(await hostedCall(gateway, users.alice)).toMatchObject({ connections: [] });
  });

  it('shares with all users with --share all', async () => {
    const gateway = await start(['--share', 'all']);
    await hostedCall(gateway, users.alice, 'a1');
    expect(await hostedCall(gateway, users.bob)).toMatchObject({ connections: ['a1'] });
  });
});

describe('a client of which nothing is known', () => {
  /** One short session of a client at one of the endpoints. */
  const visitOver: Record<string, (gateway: LocalGateway, connection: string) => Promise<Kept>> = {
    'Streamable HTTP': async ({ url }, name) => {
      const session = await initialize(url, { headers: users.alice });
      await session.callTool('connect', { name });
      const kept = await listIn(session);
      await session.delete();
      return kept;
    },
    'HTTP+SSE': async ({ baseUrl }, name) => {
      const client = await connectOld(baseUrl, { headers: users.alice });
      await client.request('tools/call', { name: 'connect', arguments: { name } });
      const { result } = await client.request('tools/call', { name: 'list_connections', arguments: {} });
      client.drop();
      return JSON.parse(result.content[0].text);
    },
  };

  it.each(Object.keys(visitOver))('meets its state from its third short session on, over %s', async (transport) => {
    const gateway = await start();
    const visit = visitOver[transport] as (typeof visitOver)[string];
    const seen = [];
    for (const name of ['a', 'b', 'c', 'd']) seen.push((await visit(gateway, name)).connections);
    expect(seen).toEqual([['a'], ['b'], ['b', 'c'], ['b', 'c', 'd']]);
    await waitFor(async () => (await gateway.descendants()).length === 1, { what: 'the end of the first process' });
  });

  it('starts fresh, also after a long session', async () => {
    const gateway = await start();
    for (const name of ['a', 'b', 'c', 'd']) {
      const session = await initialize(gateway.url, { headers: users.alice });
      await session.callTool('connect', { name });
      await session.request('tools/list');
      expect(await listIn(session)).toMatchObject({ connections: [name] });
      await session.delete();
    }
  });

  it('has its process ended with its session', async () => {
    const gateway = await start();
    const session = await initialize(gateway.url, { headers: users.alice });
    await listIn(session);
    await session.delete();
    await waitFor(async () => (await gateway.descendants()).length === 0, { what: 'the end of the process' });
  });
});

describe('without authentication on a loopback address', () => {
  const proxied = { 'X-Forwarded-For': '203.0.113.7' };

  it('clients of both eras meet the state that they left, and the start says so', async () => {
    const gateway = await start([], {});
    expect(gateway.sharing).toContain('Clients on this machine count as one user');
    await hostedCall(gateway, {}, 'l1');
    expect(await hostedCall(gateway, {})).toMatchObject({ connections: ['l1'] });
    const modern = modernKeeper(gateway.url);
    await modern.connect('m1');
    expect(await modern.list()).toMatchObject({ connections: ['m1'] });
  });

  it('[P11] nobody shares a process once a request has come through a proxy', async () => {
    const gateway = await start([], {});
    await hostedCall(gateway, {}, 'l1');
    await modernKeeper(gateway.url).connect('m1');
    for (const headers of [proxied, {}]) {
      expect(await hostedCall(gateway, headers, 'x')).toMatchObject({ connections: ['x'] });
      const modern = modernKeeper(gateway.url, headers);
      await modern.connect('y');
      expect(await modern.list()).toMatchObject({ connections: [] });
    }
    expect(gateway.logs()).toContainEqual(expect.objectContaining({ msg: 'a request came through a proxy' }));
  });
});
