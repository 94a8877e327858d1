import type { OutgoingHttpHeaders } from 'node:http';
import { describe, expect, it } from 'vitest';
import { initialize, type Session } from '../support/http-client.ts';
import { type Kept, keepingFixture, modernKeeper, users, usersEnv } from '../support/keepers.ts';
import { type LocalGateway, startLocalGateway } from '../support/local-gateway.ts';
import { waitFor } from '../support/wait-for.ts';

const start = (affinity: string, args: readonly string[] = [], env: Readonly<Record<string, string>> = usersEnv) =>
  startLocalGateway({
    env: { GANGWAY_SHARE: undefined, ...env },
    args: ['--observe.logFormat', 'json', '--defaults.affinity', affinity, ...args],
    command: [...keepingFixture, '--legacy'],
  });

const meta = (conversation?: string) =>
  conversation === undefined ? {} : { _meta: { 'openai/session': conversation } };

async function call(session: Session, name: string, args: object, conversation?: string): Promise<Kept> {
  const { messages } = await session.request('tools/call', { name, arguments: args, ...meta(conversation) });
  const { text } = messages.at(-1).result.content[0];
  return text === '"connected"' ? text : JSON.parse(text);
}

const connect = (session: Session, name: string, conversation?: string) =>
  call(session, 'connect', { name }, conversation);
const listIn = (session: Session, conversation?: string) => call(session, 'list_connections', {}, conversation);

/** A batch of calls of ChatGPT: it has a session of its own, and its session id is dropped afterwards. */
async function batch(
  { url }: LocalGateway,
  headers: OutgoingHttpHeaders,
  conversation?: string,
  connection?: string,
): Promise<Kept> {
  const session = await initialize(url, { headers });
  await session.request('tools/list', {});
  if (connection !== undefined) await connect(session, connection, conversation);
  return await listIn(session, conversation);
}

describe('an affinity of a member of _meta, as ChatGPT sends', () => {
  const template = '{meta:openai/session}';

  it('[M-05] gives each conversation a process, whatever sessions its calls are in', async () => {
    const gateway = await start(template);
    const first = await batch(gateway, users.alice, 'v1', 'a');
    const other = await batch(gateway, users.alice, 'v2', 'b');
    expect(first.connections).toEqual(['a']);
    expect(other.connections).toEqual(['b']);
    expect(await batch(gateway, users.alice, 'v1')).toMatchObject({ connections: ['a'], pid: first.pid });
    expect(await batch(gateway, users.alice, 'v2')).toMatchObject({ connections: ['b'], pid: other.pid });
    // Both conversations, and one process for the sessions that have not named one yet.
    expect((await gateway.descendants()).length).toBeLessThanOrEqual(3);
  });

  it('moves a session that serves several conversations, one after another or at once', async () => {
    const gateway = await start(template);
    const session = await initialize(gateway.url, { headers: users.alice });
    await connect(session, 'a', 'v1');
    await connect(session, 'b', 'v2');
    const seen = await Promise.all(['v1', 'v2', 'v1', 'v2'].map((each) => listIn(session, each)));
    expect(seen.map(({ connections }) => connections)).toEqual([['a'], ['b'], ['a'], ['b']]);
  });

  it('[P11] is within the user, and calls without a conversation meet nobody', async () => {
    const gateway = await start(template);
    await batch(gateway, users.alice, 'v1', 'a');
    expect(await batch(gateway, users.bob, 'v1')).toMatchObject({ connections: [] });
    expect(await batch(gateway, users.alice, undefined, 'x')).toMatchObject({ connections: ['x'] });
    expect(await batch(gateway, users.alice)).toMatchObject({ connections: [] });
  });

  it('[P11] takes a value over 1,024 characters as none', async () => {
    const gateway = await start(template);
    const long = 'x'.repeat(1_025);
    expect(await batch(gateway, users.alice, long, 'a')).toMatchObject({ connections: ['a'] });
    expect(await batch(gateway, users.alice, long)).toMatchObject({ connections: [] });
  });

  it('[P11] keeps 160 batches of two users apart that name the same conversations at the same time', async () => {
    const gateway = await start(template);
    const owners = new Map<number, string>();
    let next = 0;
    const callOn = async (user: 'alice' | 'bob', conversation: string): Promise<void> => {
      const expected = `${user} ${conversation}`;
      while (next < 160) {
        next += 1;
        const { connections, pid } = await batch(gateway, users[user], conversation, expected);
        expect(new Set(connections)).toEqual(new Set([expected]));
        expect(owners.get(pid) ?? expected).toBe(expected);
        owners.set(pid, expected);
      }
    };
    const clients = (['alice', 'bob'] as const).flatMap((user) =>
      ['v1', 'v2', 'v1', 'v2'].map((each) => callOn(user, each)),
    );
    await Promise.all(clients);
    expect([...owners.values()].sort()).toEqual(['alice v1', 'alice v2', 'bob v1', 'bob v2']);
  });

  it('holds for 2026-07-28 clients', async () => {
    const gateway = await start(template);
    const of = (conversation?: string) => modernKeeper(gateway.url, users.alice, undefined, meta(conversation)._meta);
    await of('v1').connect('a');
    expect(await of('v1').list()).toMatchObject({ connections: ['a'] });
    expect(await of('v2').list()).toMatchObject({ connections: [] });
    const alone = await of().list();
    expect(alone).toMatchObject({ connections: [] });
    await waitFor(async () => !(await gateway.descendants()).some(({ pid }) => pid === alone.pid), {
      what: 'the end of its process',
    });
  });
});

describe('an affinity of a header', () => {
  const template = '{header:X-Person} {client}';
  const as = (person: string) => ({ ...users.alice, 'X-Person': person });

  it('[M-05] keeps apart the people behind one API key, and lets each of them come back', async () => {
    const gateway = await start(template);
    const eve = await batch(gateway, as('eve'), undefined, 'e');
    expect(await batch(gateway, as('mallory'))).toMatchObject({ connections: [] });
    expect(await batch(gateway, as('eve'))).toMatchObject({ connections: ['e'], pid: eve.pid });
    expect(await batch(gateway, users.alice)).toMatchObject({ connections: [] });
    const modern = (person: string) => modernKeeper(gateway.url, as(person), 'm');
    await modern('eve').connect('modern');
    expect(await modern('eve').list()).toMatchObject({ connections: ['modern'] });
    expect(await modern('mallory').list()).toMatchObject({ connections: [] });
  });

  it('[P11] lets the session itself need no header, and refuses the header twice', async () => {
    const gateway = await start(template);
    const session = await initialize(gateway.url, { headers: as('eve') });
    await connect(session, 'e');
    const again = await initialize(gateway.url, { headers: as('eve') });
    expect(await listIn(again)).toMatchObject({ connections: ['e'] });
    const twice = { ...users.alice, 'X-Person': ['eve', 'mallory'] };
    await expect(initialize(gateway.url, { headers: twice })).rejects.toThrow();
  });
});

describe('an affinity without authentication', () => {
  it('holds for the clients of this machine', async () => {
    const gateway = await start('{meta:openai/session}', [], {});
    await batch(gateway, {}, 'v1', 'a');
    expect(await batch(gateway, {}, 'v1')).toMatchObject({ connections: ['a'] });
    expect(await batch(gateway, {}, 'v2')).toMatchObject({ connections: [] });
  });

  it('[P11] has no effect for unknown clients, and the log says so', async () => {
    const gateway = await start('{meta:openai/session}', ['--public-url', 'http://127.0.0.1:1/'], {});
    await batch(gateway, {}, 'v1', 'a');
    expect(await batch(gateway, {}, 'v1')).toMatchObject({ connections: [] });
    expect(gateway.logs()).toContainEqual(
      expect.objectContaining({
        msg: 'the affinity has no effect, because unauthenticated clients share no processes',
      }),
    );
  });

  it('holds for unknown clients if the operator says that all of them share', async () => {
    const args = ['--public-url', 'http://127.0.0.1:1/', '--share', 'all'];
    const gateway = await start('{meta:openai/session}', args, {});
    await batch(gateway, {}, 'v1', 'a');
    expect(await batch(gateway, {}, 'v1')).toMatchObject({ connections: ['a'] });
    expect(await batch(gateway, {}, 'v2')).toMatchObject({ connections: [] });
  });
});
