// A client of an affinity comes back to the same process at any instance (docs/decisions/0105).
import type { OutgoingHttpHeaders } from 'node:http';
import { describe, expect, test } from 'vitest';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { initialize, type Session } from '../support/http-client.ts';
import { type Kept, keepingFixture, modernKeeper, users, usersEnv } from '../support/keepers.ts';
import { waitFor } from '../support/wait-for.ts';
import { shortLeases, urlOf } from './fast.ts';

const conversation = { _meta: { 'openai/session': 'v1' } };

async function startTwo(affinity: string, args: readonly string[] = []): Promise<Cluster> {
  const cluster = await startCluster({
    instances: 2,
    env: { ...usersEnv, GANGWAY_SHARE: 'auto' },
    command: [...keepingFixture, '--legacy'],
    args: ['--defaults.affinity', affinity, ...args],
  });
  const isReady = async (baseUrl: string) => (await fetch(`${baseUrl}/readyz`)).status === 200;
  for (const { baseUrl } of cluster.instances)
    await waitFor(() => isReady(baseUrl), { what: 'the first lease', deadlineMs: 20_000 });
  return cluster;
}

async function call(session: Session, name: string, args: object): Promise<Kept> {
  const { messages } = await session.request('tools/call', { name, arguments: args, ...conversation });
  const { text } = messages.at(-1).result.content[0];
  return text === '"connected"' ? text : JSON.parse(text);
}

/** A visit of a client: a session, which notes its name in the process and ends or stays. Resolves with the names. */
async function visit(url: string, headers: OutgoingHttpHeaders, name?: string): Promise<Kept> {
  const session = await initialize(url, { headers });
  await session.request('tools/list', {});
  if (name !== undefined) await call(session, 'connect', { name });
  const kept = await call(session, 'list_connections', {});
  if (name === undefined) await session.delete();
  return kept;
}

describe.each([
  ['{user}', {}, {}],
  ['{client}', {}, {}],
  ['{claim:sub}', {}, {}],
  ['{header:X-Person}', { 'X-Person': 'ada' }, { 'X-Person': 'eve' }],
  ['{meta:openai/session}', {}, {}],
] as const)('two instances, and an affinity of %s', (affinity, person, other) => {
  test('[M-05] [P11] a client that comes back meets its process at either instance, and no other user does', async () => {
    const cluster = await startTwo(affinity);
    const [first, second] = [urlOf(cluster, 0), urlOf(cluster, 1)];
    const alice = { ...users.alice, ...person };
    const { pid } = await visit(first, alice, 'a');
    for (const url of [second, first, second])
      expect(await visit(url, alice)).toMatchObject({ pid, connections: ['a'] });
    const bob = { ...users.bob, ...person };
    const ofBob = await visit(second, bob, 'b');
    expect(ofBob).toMatchObject({ connections: ['b'] });
    expect(await visit(first, bob)).toMatchObject({ pid: ofBob.pid, connections: ['b'] });
    expect(await visit(second, alice)).toMatchObject({ pid, connections: ['a'] });
    if ('X-Person' in other) expect(await visit(second, { ...alice, ...other })).toMatchObject({ connections: [] });
  });
});

test('[P3] the loss of the home costs the state, and the next client opens its session elsewhere', async () => {
  const cluster = await startTwo('{user}', shortLeases);
  const [first, second] = [urlOf(cluster, 0), urlOf(cluster, 1)];
  const { pid } = await visit(first, users.alice, 'a');
  await cluster.kill(0);
  const next = await visit(second, users.alice, 'b');
  expect(next).toMatchObject({ connections: ['b'] });
  expect(next.pid).not.toBe(pid);
  expect(await visit(second, users.alice)).toMatchObject({ pid: next.pid });
});

test('[M-05] 2026-07-28 clients of an affinity meet their process at either instance', async () => {
  const cluster = await startTwo('{meta:openai/session}');
  const at = (instance: number, user: keyof typeof users) =>
    modernKeeper(urlOf(cluster, instance), users[user], undefined, conversation._meta);
  await at(0, 'alice').connect('a');
  expect(await at(1, 'alice').list()).toMatchObject({ connections: ['a'] });
  expect(await at(1, 'bob').list()).toMatchObject({ connections: [] });
});
