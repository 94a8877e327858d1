import { Agent } from 'node:http';
import { describe, expect, onTestFinished, test } from 'vitest';
import { environmentNumber } from '../support/environment-number.ts';
import { root } from '../support/gateway.ts';
import { type HostedClient, hostedClients, type TurnOptions } from '../support/hosted-clients.ts';
import type { Message } from '../support/http-client.ts';
import { type Kept, keepingFixture, users, usersEnv } from '../support/keepers.ts';
import { startLocalGateway } from '../support/local-gateway.ts';

/** How many calls are interleaved (`HOSTED_CALLS=10000`). */
const interleavedCalls = environmentNumber('HOSTED_CALLS', 200);

const shufflingFixture = [process.execPath, `${root}test/fixtures/shuffling-server.mjs`];
const byName = hostedClients.map((client) => [client.name, client] as const);

const start = (env: Readonly<Record<string, string>>, command: readonly string[], args: readonly string[] = []) =>
  startLocalGateway({ env: { GANGWAY_SHARE: undefined, ...env }, command, args });

const resultOf = (messages: readonly Message[] | undefined): Message =>
  messages?.find(({ result }) => result !== undefined)?.result.content[0].text;

/** What the server keeps, as the second turn sees it, after the first turn has added to it. */
async function turns(client: HostedClient, url: string, name: string, options: TurnOptions): Promise<Kept> {
  await client.turn(url, [{ tool: 'connect', args: { name } }], options);
  const [listed] = await client.turn(url, [{ tool: 'list_connections' }], options);
  return JSON.parse(resultOf(listed));
}

/** After two short sessions, a client that the gateway does not know by name is seen to open one for each call. */
async function becomeKnown(client: HostedClient, url: string, options: TurnOptions): Promise<void> {
  for (let turn = 0; turn < 2; turn++) await client.turn(url, [{ tool: 'list_connections' }], options);
}

describe('clients that keep no session, with the defaults', () => {
  test.each(byName)('[M-05] %s meets its state in its next turn, and never that of another user', async (_, client) => {
    const { url } = await start(usersEnv, [...keepingFixture, '--legacy']);
    for (const headers of [users.alice, users.bob]) await becomeKnown(client, url, { headers });
    expect(await turns(client, url, 'a', { headers: users.alice })).toMatchObject({ connections: ['a'] });
    expect(await turns(client, url, 'b', { headers: users.bob })).toMatchObject({ connections: ['b'] });
    expect(await turns(client, url, 'a2', { headers: users.alice })).toMatchObject({ connections: ['a', 'a2'] });
  });

  test.each(byName)('[M-05] %s meets its state as a local user on a loopback address', async (_, client) => {
    const { url } = await start({}, [...keepingFixture, '--legacy']);
    await becomeKnown(client, url, {});
    expect(await turns(client, url, 'a', {})).toMatchObject({ connections: ['a'] });
    expect(await turns(client, url, 'b', {})).toMatchObject({ connections: ['a', 'b'] });
  });
});

/** Names with which a client could try to be taken for another user's. Each user has clients with all of them. */
const hostileNames = [undefined, 'bob', '","subject":"bob', '__proto__', 'keys\u0000bob'];

test(
  `[P2] [P11] ${interleavedCalls} calls of two users' clients with the same names, ids and tokens, at once: each gets its own answer, and no process has two users`,
  async () => {
    // Each user has more clients than one user may have by default, and each of them leaves sessions behind.
    const gateway = await start(usersEnv, shufflingFixture, ['--limits.user.sessions', '500']);
    const agent = new Agent({ keepAlive: true });
    onTestFinished(() => agent.destroy());
    let left = interleavedCalls;
    const processes = new Map<number, string>();
    const work = async (user: 'alice' | 'bob', client: HostedClient, index: number): Promise<void> => {
      for (let turn = 0; left > 0; turn += 1) {
        const clientName = hostileNames[turn % hostileNames.length];
        const calls = Array.from({ length: Math.min(left, 4) }, (_, call) => ({
          tool: 'echo',
          args: { tag: `${user}-${client.name}-${index}-${turn}-${call}`, user },
          progressToken: 1,
        }));
        left -= calls.length;
        const options = { headers: users[user], agent, conversation: 'v1', ...(clientName && { clientName }) };
        const answers = await client.turn(gateway.url, calls, options);
        for (const [call, { args }] of calls.entries()) {
          const { tag, users: seen, pid } = JSON.parse(resultOf(answers[call]));
          expect([tag, seen]).toEqual([args.tag, [user]]);
          for (const { method, params } of answers[call] ?? [])
            if (method === 'notifications/progress')
              expect(params.message).toContain(`${user}-${client.name}-${index}-${turn}-`);
          expect(processes.get(pid) ?? user).toBe(user);
          processes.set(pid, user);
        }
      }
    };
    await Promise.all(
      (['alice', 'bob'] as const).flatMap((user) =>
        hostedClients.flatMap((client) => [0, 1].map((index) => work(user, client, index))),
      ),
    );
    expect(new Set(processes.values())).toEqual(new Set(['alice', 'bob']));
  },
  60_000 + interleavedCalls * 100,
);
