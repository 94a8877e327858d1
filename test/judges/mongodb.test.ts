// mongodb-mcp-server keeps connections in its process, and shows them to everybody who shares it. Two users with API keys use
// it at once, with clients of both eras. There is a stand-in for the database of each.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { startGateway } from '../support/gateway.ts';
import { hostedClients } from '../support/hosted-clients.ts';
import type { Message } from '../support/http-client.ts';
import { users, usersEnv } from '../support/keepers.ts';
import { callModern } from '../support/modern-client.ts';
import { clientsFolder, installClients } from './install-clients.ts';
import { keep } from './judge.ts';

type User = keyof typeof users;
type Call = (user: User, tool: string, args?: object) => Promise<Message>;

const rounds = 20;
const program = join(clientsFolder, 'node_modules/mongodb-mcp-server/dist/index.js');

beforeAll(installClients);

/** Starts a stand-in, and resolves with the connection string. */
async function startDatabase(name: string): Promise<string> {
  const stdio = ['ignore', 'pipe', 'inherit'] as const;
  const child = spawn(process.execPath, [join(clientsFolder, 'mongo-stand-in.mjs'), name], { stdio: [...stdio] });
  onTestFinished(() => void child.kill());
  const [port] = (await once(child.stdout as NodeJS.ReadableStream, 'data')) as [Buffer];
  return `mongodb://127.0.0.1:${port.toString().trim()}/?directConnection=true`;
}

const resultIn = (messages: readonly Message[]): Message => messages.find(({ result }) => result !== undefined)?.result;

/** The ways to call a tool: each hosted client, with its sessions, and a client of 2026-07-28. */
const callers: readonly (readonly [name: string, (url: string) => Call])[] = [
  ...hostedClients.map(
    (client) =>
      [
        client.name,
        (url: string): Call =>
          async (user, tool, args = {}) => {
            const [messages = []] = await client.turn(url, [{ tool, args }], { headers: users[user] });
            return resultIn(messages);
          },
      ] as const,
  ),
  [
    'a client of 2026-07-28',
    (url) =>
      async (user, tool, args = {}) =>
        resultIn((await callModern(url, tool, args, { headers: users[user] })).messages),
  ],
];

test('mongodb-mcp-server: two users never meet the connection of the other', async () => {
  const home = await mkdtemp(join(tmpdir(), 'gangway-mongodb-'));
  onTestFinished(() => rm(home, { recursive: true, force: true }));
  const databases = { alice: await startDatabase('of_alice'), bob: await startDatabase('of_bob') };
  const env = { GANGWAY_SHARE: undefined, HOME: home, ...usersEnv };
  const { url } = await startGateway({
    env,
    args: ['--env', 'MDB_MCP_TELEMETRY=disabled'],
    command: [process.execPath, program],
  });
  for (const [name, callerAt] of callers) {
    const call = callerAt(url);
    const connect = async (user: User): Promise<string> =>
      (await call(user, 'connect', { connectionString: databases[user] })).structuredContent.connectionId;
    const own = { alice: await connect('alice'), bob: await connect('bob') };
    const idsOf = async (user: User): Promise<string[]> =>
      (await call(user, 'list-connections')).structuredContent.connections.map(
        ({ connectionId }: Message) => connectionId,
      );
    const seen = { own: 0, foreign: 0 };
    const look = async (user: User, other: User): Promise<void> => {
      for (let round = 0; round < rounds; round += 1) {
        const ids = await idsOf(user);
        const [mine, theirs] = [
          await call(user, 'list-databases', { connectionId: own[user] }),
          await call(user, 'list-databases', { connectionId: own[other] }),
        ];
        const text = JSON.stringify([mine, theirs]);
        if (ids.includes(own[user]) && text.includes(`of_${user}`)) seen.own += 1;
        if (ids.includes(own[other]) || text.includes(`of_${other}`)) seen.foreign += 1;
      }
    };
    await Promise.all([look('alice', 'bob'), look('bob', 'alice')]);
    const failed = [
      ...(seen.foreign > 0 ? [`${seen.foreign} times the connection of the other user`] : []),
      ...(seen.own < 2 * rounds ? [`${2 * rounds - seen.own} times not the own connection`] : []),
    ];
    keep({
      judge: 'mongodb-mcp-server, two users with API keys',
      arm: 'calls that met their own connection',
      scenario: name,
      passed: seen.own,
      failed,
    });
    expect(failed, name).toEqual([]);
  }
}, 600_000);
