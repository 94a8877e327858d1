import { spawnSync } from 'node:child_process';
import { createHmac, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { linkCredential } from '../../../src/cluster/link/link-identity.ts';
import { waitFor } from '../../support/wait-for.ts';
import { type Addresses, connectSender, secretOf, startLinkEnd } from './link-fixture.ts';

const temporary = (): string => {
  const path = mkdtempSync(join(tmpdir(), 'gangway-link-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
};

async function startPair() {
  const addresses: Addresses = new Map();
  const directory = temporary();
  const a = await startLinkEnd({ name: 'a', addresses, directory });
  const b = await startLinkEnd({ name: 'b', addresses, directory });
  return { addresses, directory, a, b };
}

const message = (text: string): readonly Buffer[] => [Buffer.from(text)];

const pathOf = (directory: string, addresses: Addresses, name: string): string =>
  join(directory, (addresses.get(name) ?? '').replace('unix:', ''));

function knock(path: string): { readonly socket: Socket; readonly heard: () => number } {
  const socket = connect({ path });
  let heard = 0;
  socket
    .on('error', () => undefined)
    .on('data', ({ length }) => {
      heard += length;
    });
  onTestFinished(() => void socket.destroy());
  return { socket, heard: () => heard };
}

describe('a direct link between two instances of one host', () => {
  it('carries messages of both directions, in order, on one connection', async () => {
    const { a, b } = await startPair();
    const [fromA, fromB] = [connectSender(a, 'b'), connectSender(b, 'a')];
    const there = await fromA.open();
    for (let n = 1; n <= 100; n += 1) there.send(n, message(`m${n}`));
    await waitFor(() => b.received.length === 100, { what: 'the messages' });
    (await fromB.open()).send(1, message('answer'));
    await waitFor(() => fromA.notes.at(-1) === 'acknowledged 100' && fromB.notes.at(-1) === 'acknowledged 1');
    expect(b.received).toEqual(Array.from({ length: 100 }, (_, index) => `a ${index + 1} m${index + 1}`));
    expect(a.received).toEqual(['b 1 answer']);
  });

  it('takes messages that arrive together with the last message of the handshake', async () => {
    const { a, b } = await startPair();
    const { open, notes } = connectSender(a, 'b');
    const connection = await open();
    connection.send(1, [Buffer.alloc(512 * 1024)]);
    connection.send(2, message('second'));
    await waitFor(() => notes.includes('acknowledged 2'));
    expect(b.received).toEqual(['a 1 524288 bytes', 'a 2 second']);
  });

  it('is not made with other secrets, under another name, or to a path that a peer names', async () => {
    const { addresses, directory, a, b } = await startPair();
    const outside = join(temporary(), 'other.sock');
    let visits = 0;
    const server = createServer((socket) => {
      visits += 1;
      socket.destroy();
    }).listen(outside);
    onTestFinished(() => void server.close());
    const reaches = async (): Promise<boolean> => {
      a.links.forget('b');
      a.links.to('b');
      return waitFor(() => a.links.reaches('b'), { deadlineMs: 300 }).catch(() => false);
    };
    const address = addresses.get('b') ?? '';
    addresses.set('b', `unix:${outside}`);
    expect(await reaches()).toBe(false);
    addresses.set('b', `unix:../${outside.split('/').at(-2)}/other.sock`);
    expect(await reaches()).toBe(false);
    expect(visits).toBe(0);
    addresses.set('b', address);
    b.secrets = [secretOf('rotated')];
    b.links.publish();
    expect(await reaches()).toBe(false);
    b.secrets = [secretOf('shared')];
    b.links.publish();
    b.name = 'c';
    expect(await reaches()).toBe(false);
    b.name = 'b';
    expect(await reaches()).toBe(true);
    expect(readdirSync(directory)).toHaveLength(2);
  });

  it('leaves no socket behind, and removes those of killed instances', async () => {
    const directory = temporary();
    const left = join(directory, `${'0'.repeat(16)}.sock`);
    const listen = "require('net').createServer().listen(process.argv[1],()=>process.kill(process.pid,'SIGKILL'))";
    expect(spawnSync(process.execPath, ['-e', listen, left]).signal).toBe('SIGKILL');
    writeFileSync(join(directory, 'another file'), '');
    const longAgo = new Date(Date.now() - 120_000);
    utimesSync(left, longAgo, longAgo);
    const addresses: Addresses = new Map();
    const end = await startLinkEnd({ name: 'a', addresses, directory });
    await waitFor(() => readdirSync(directory).length === 2, { what: 'the removal of the socket' });
    await end.links.close();
    expect(readdirSync(directory)).toEqual(['another file']);
  });
});

describe('a stranger at the socket of an instance', () => {
  const closed = (socket: Socket): Promise<boolean> => waitFor(() => socket.closed, { what: 'the end of a stranger' });

  it.each([
    ['garbage', Buffer.alloc(64 * 1024, 7)],
    ['100 MB', Buffer.alloc(100 * 1024 * 1024, 0xff)],
    ['an identity without a secret', Buffer.from(`\u0014gangway-link 1 0 x b${'n'.repeat(32)}`)],
  ])('hears nothing after %s, and a peer is served meanwhile', async (_, bytes) => {
    const { addresses, directory, a, b } = await startPair();
    const { socket, heard } = knock(pathOf(directory, addresses, 'b'));
    socket.write(bytes);
    await closed(socket);
    expect(heard()).toBe(0);
    const { open, notes } = connectSender(a, 'b');
    (await open()).send(1, message('served'));
    await waitFor(() => notes.includes('acknowledged 1'));
    expect(b.faults).toEqual([]);
  });

  it('gets nothing by a recorded identity, or by the proof of its peer sent back', async () => {
    const { addresses, directory, b } = await startPair();
    const { identity } = linkCredential(secretOf('shared'), { from: 'a', to: 'b' });
    const { socket, heard } = knock(pathOf(directory, addresses, 'b'));
    socket.write(Buffer.concat([Buffer.from([identity.length]), Buffer.from(identity), Buffer.alloc(32, 1)]));
    socket.once('data', (reply: Buffer) => socket.write(reply.subarray(32)));
    await closed(socket);
    expect(heard()).toBe(64);
    expect(b.links.reached).toEqual([]);
  });

  it('[P8] cannot hold many connections, or one for long', async () => {
    const { addresses, directory, a } = await startPair();
    const strangers = Array.from({ length: 60 }, () => knock(pathOf(directory, addresses, 'b')).socket);
    await waitFor(() => strangers.filter((each) => each.closed).length >= 28, { what: 'the limit of strangers' });
    await Promise.all(strangers.map(closed));
    const { open, notes } = connectSender(a, 'b');
    (await open()).send(1, message('served'));
    await waitFor(() => notes.includes('acknowledged 1'));
  });
});

it('a connection whose handshake began before a rename is none to the new name', async () => {
  const addresses: Addresses = new Map();
  const directory = temporary();
  const owner = await startLinkEnd({ name: 'owner-1', addresses, directory });
  const { socket } = knock(pathOf(directory, addresses, 'owner-1'));
  const { identity, psk } = linkCredential(secretOf('shared'), { from: 'ingress', to: 'owner-1' });
  const nonce = randomBytes(32);
  socket.write(Buffer.concat([Buffer.from([identity.length]), Buffer.from(identity, 'latin1'), nonce]));
  const [answer] = (await once(socket, 'data')) as [Buffer];
  owner.name = 'owner-2';
  owner.links.restart();
  const theirs = answer.subarray(0, 32);
  socket.write(createHmac('sha256', psk).update('mcp-gangway local dialer').update(nonce).update(theirs).digest());
  await waitFor(() => socket.destroyed, { what: 'the end of the connection' });
  expect(owner.links.reached).toEqual([]);
});
