import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { root } from '../support/gateway.ts';
import { initialize, post } from '../support/http-client.ts';
import { users, usersEnv } from '../support/keepers.ts';
import { type LocalGateway, startLocalGateway } from '../support/local-gateway.ts';
import { callModern } from '../support/modern-client.ts';
import { connectOld } from '../support/old-client.ts';
import { waitForDescendants } from '../support/processes.ts';
import { waitFor } from '../support/wait-for.ts';

type Flag = 'refuse' | 'late' | 'both' | 'hang' | 'kill';

const start = (flags: readonly Flag[] = [], args: readonly string[] = [], env = {}): Promise<LocalGateway> =>
  startLocalGateway({
    env: { GANGWAY_SHARE: undefined, ...env },
    args: ['--observe.logFormat', 'json', ...args],
    command: [process.execPath, `${root}test/fixtures/children/only-process.mjs`, randomUUID(), ...flags],
  });

/** The process that a call has reached, and the number of its calls. */
interface Reached {
  readonly pid: string;
  readonly calls: number;
}

// biome-ignore lint/suspicious/noExplicitAny: a test reads messages of every shape
function readReached(message: any): Reached {
  const [pid = '', calls] = String(message.result?.content[0].text ?? JSON.stringify(message)).split(' ');
  return { pid, calls: Number(calls) };
}

interface Client {
  call(): Promise<Reached>;
  end(): Promise<unknown>;
}

const params = { name: 'count', arguments: {} };

const clients = {
  async legacy({ url }: LocalGateway, headers = {}): Promise<Client> {
    const session = await initialize(url, { version: '2025-06-18', headers });
    return {
      call: async () => readReached((await session.request('tools/call', params)).messages.at(-1)),
      end: () => session.delete(),
    };
  },
  async sse({ baseUrl }: LocalGateway): Promise<Client> {
    const client = await connectOld(baseUrl);
    return {
      call: async () => readReached(await client.request('tools/call', params)),
      end: async () => client.drop(),
    };
  },
  async modern({ url }: LocalGateway, headers = {}): Promise<Client> {
    return {
      call: async () => readReached((await callModern(url, 'count', {}, { headers })).json),
      end: async () => undefined,
    };
  },
  async asking({ url }: LocalGateway): Promise<Client> {
    const meta = { 'io.modelcontextprotocol/clientCapabilities': { elicitation: {} } };
    return {
      call: async () => readReached((await callModern(url, 'count', {}, { meta })).json),
      end: async () => undefined,
    };
  },
};

const warning = expect.objectContaining({ msg: 'only one process of the server can run' });

describe('a server of which only one process can run', () => {
  test.each<[string, readonly Flag[]]>([
    ['exits', []],
    ['exits on its first message', ['late']],
    ['refuses initialize', ['refuse']],
    ['exits, and knows both eras', ['both']],
    ['exits on its first message, and knows both eras', ['late', 'both']],
  ])('serves clients of each kind together, in each order; a second process %s', async (_, flags) => {
    // Who comes first matters where the second process of the server exits, and where its era is to be found out.
    for (const order of [
      ['legacy', 'modern', 'asking', 'legacy', 'sse'],
      ...(flags.length === 0 || flags.includes('both') ? [['modern', 'legacy', 'sse', 'asking'] as const] : []),
      ...(flags.length === 0 ? [['sse', 'modern', 'legacy'] as const] : []),
    ] as const) {
      const gateway = await start(flags);
      const opened: Client[] = [];
      const reached: Reached[] = [];
      for (const kind of order) {
        const client = await clients[kind](gateway);
        opened.push(client);
        reached.push(await client.call());
      }
      for (const client of opened) reached.push(await client.call());
      expect(reached.map(({ pid }) => pid)).toEqual(reached.map(() => reached[0]?.pid));
      expect(reached.map(({ calls }) => calls)).toEqual(reached.map((_, index) => index + 1));
      // Legacy sessions of a modern server need no process.
      if (!flags.includes('both')) expect(gateway.logs()).toContainEqual(warning);
      await gateway.stop();
    }
  });

  test.each([
    ['legacy', 'legacy', 'modern', 'asking'],
    ['modern', 'legacy', 'asking'],
  ] as const)('serves clients whose processes are silent while the first one works: %s, %s, …', async (...order) => {
    const gateway = await start(['hang'], ['--defaults.timeouts.start', '8s']);
    const opened: Client[] = [];
    for (const kind of order) opened.push(await clients[kind](gateway));
    const reached: Reached[] = [];
    for (const client of opened) reached.push(await client.call());
    expect(reached.map(({ pid }) => pid)).toEqual(reached.map(() => reached[0]?.pid));
    expect(gateway.logs()).toContainEqual(warning);
  });

  test.each([
    ['legacy', 'legacy', 'modern', 'asking'],
    ['modern', 'legacy', 'legacy', 'asking'],
  ] as const)('serves clients whose processes end each other: %s, %s, …', async (...order) => {
    const gateway = await start(['kill']);
    const opened: Client[] = [];
    for (const kind of order) {
      const client = await clients[kind](gateway);
      await client.call();
      opened.push(client);
    }
    await waitFor(() => gateway.logs().some(({ msg }) => msg === 'only one process of the server can run'), {
      what: 'the warning',
    });
    // The last ones to lose their process get the one of the others.
    const reachAll = async (): Promise<readonly string[]> => {
      const pids: string[] = [];
      for (const client of opened) pids.push((await client.call()).pid);
      return [...new Set(pids)];
    };
    await waitFor(async () => (await reachAll()).length === 1, { what: 'one process for all' });
    expect(await gateway.descendants()).toHaveLength(1);
  });

  test('serves clients one after the other, each with a process of its own', async () => {
    const gateway = await start();
    for (const kind of ['legacy', 'legacy', 'modern', 'legacy'] as const) {
      const client = await clients[kind](gateway);
      await client.call();
      await client.end();
    }
    const [last] = await gateway.descendants();
    expect(last).toBeDefined();
  });

  test('is replaced after the first ping of the gateway, and serves', async () => {
    const gateway = await start();
    await waitForDescendants(gateway, 1);
    const [first] = await gateway.descendants();
    const isReplaced = async () => (await gateway.descendants()).some(({ pid }) => pid !== first?.pid);
    await waitFor(isReplaced, { what: 'the next process' });
    expect((await (await clients.legacy(gateway)).call()).calls).toBe(1);
  });

  test('serves sessions that open at once', async () => {
    const gateway = await start();
    const opened = await Promise.all(Array.from({ length: 5 }, () => clients.legacy(gateway)));
    const reached = await Promise.all(opened.map((client) => client.call()));
    expect(new Set(reached.map(({ pid }) => pid)).size).toBe(1);
  });

  test('gives a session its own process again when the shared one has ended', async () => {
    const gateway = await start();
    const first = [await clients.legacy(gateway), await clients.legacy(gateway)];
    const before = await Promise.all(first.map((client) => client.call()));
    for (const client of first) await client.end();
    const next = await clients.legacy(gateway);
    const { pid, calls } = await next.call();
    expect([before.map((each) => each.pid).includes(pid), calls]).toEqual([false, 1]);
  });

  test('[P11] is never shared by two users: the second one gets an error that says why', async () => {
    const gateway = await start([], [], usersEnv);
    const alice = await clients.legacy(gateway, users.alice);
    await alice.call();
    const body = { jsonrpc: '2.0', id: 0, method: 'initialize' };
    const info = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'b', version: '1' } };
    const refused = await post(gateway.url, { ...body, params: info }, users.bob);
    expect([refused.status, refused.json.error.data.reason]).toEqual([502, 'server_start_failed']);
    expect((await alice.call()).calls).toBe(2);
    expect((await (await clients.modern(gateway, users.alice)).call()).calls).toBe(3);
    await alice.end();
  });

  test('[P2] [P11] whose process is lost starts one again for all of its sessions', async () => {
    const gateway = await start();
    const opened = [await clients.legacy(gateway), await clients.legacy(gateway)];
    const [{ pid = '' } = {}] = await Promise.all(opened.map((client) => client.call()));
    process.kill(Number(pid), 'SIGKILL');
    const ended = () => gateway.logs().filter(({ msg }) => String(msg).includes('restored'));
    await waitFor(() => ended().length > 1, { what: 'the restored sessions' });
    const reached = await Promise.all(opened.map((client) => client.call()));
    expect(new Set(reached.map((each) => each.pid)).size).toBe(1);
    expect(reached.map(({ calls }) => calls).sort()).toEqual([1, 2]);
  });
});
