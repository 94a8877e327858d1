import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { linkCredential } from '../../../src/cluster/link/link-identity.ts';
import { waitFor } from '../../support/wait-for.ts';
import { type Addresses, connectSender, type LinkEnd, putProxyBefore, secretOf, startLinkEnd } from './link-fixture.ts';

const message = (text: string): readonly Buffer[] => [Buffer.from(text)];

async function startPair(silenceMs?: number) {
  const addresses: Addresses = new Map();
  const a = await startLinkEnd({ name: 'a', addresses, silenceMs });
  const b = await startLinkEnd({ name: 'b', addresses, silenceMs });
  return { addresses, a, b };
}

describe('a direct link between two instances', () => {
  it('carries messages of both directions in order on one connection, and acknowledges them', async () => {
    const { a, b } = await startPair();
    const [fromA, fromB] = [connectSender(a, 'b'), connectSender(b, 'a')];
    const there = await fromA.open();
    for (let n = 1; n <= 100; n += 1) there.send(n, message(`m${n}`));
    await waitFor(() => b.received.length === 100, { what: 'the messages' });
    const back = await fromB.open();
    back.send(1, message('answer'));
    await waitFor(() => fromA.notes.at(-1) === 'acknowledged 100' && fromB.notes.at(-1) === 'acknowledged 1');
    expect(b.received).toEqual(Array.from({ length: 100 }, (_, index) => `a ${index + 1} m${index + 1}`));
    expect(a.received).toEqual(['b 1 answer']);
    expect([a.links.reached, b.links.reached]).toEqual([['b'], ['a']]);
  });

  it('[P8] takes no more than a window of unacknowledged messages', async () => {
    const { a, b } = await startPair();
    const { open, notes } = connectSender(a, 'b');
    const connection = await open();
    const large = [Buffer.alloc(512 * 1024), Buffer.alloc(200 * 1024)];
    connection.send(1, large);
    expect(connection.hasRoom).toBe(true);
    connection.send(3, large);
    expect(connection.hasRoom).toBe(false);
    await waitFor(() => notes.includes('acknowledged 4'));
    expect(connection.hasRoom).toBe(true);
    expect(b.received).toHaveLength(4);
  });

  it('refuses messages together with all later ones until the sender starts again', async () => {
    const addresses: Addresses = new Map();
    const a = await startLinkEnd({ name: 'a', addresses });
    const b = await startLinkEnd({ name: 'b', addresses, takes: (first) => first !== 1 });
    const { open, notes } = connectSender(a, 'b');
    const connection = await open();
    connection.send(1, message('refused'));
    connection.send(2, message('sent before the refusal was known'));
    await waitFor(() => notes.length > 0);
    connection.use({ onAcknowledged: (n) => notes.push(`again ${n}`), onEnded: (n) => notes.push(`over ${n}`) }, 3);
    connection.send(3, message('taken'));
    await waitFor(() => notes.length > 1);
    expect(notes).toEqual(['refused 1', 'again 3']);
    expect(b.received).toEqual(['a 3 taken']);
  });

  it('is not made to an instance that has another name now, or other secrets', async () => {
    const { a, b } = await startPair();
    b.name = 'renamed';
    expect(await attempt(a, 'b')).toBe(false);
    b.name = 'b';
    b.secrets = [secretOf('rotated')];
    b.links.publish();
    expect(await attempt(a, 'b')).toBe(false);
    b.secrets = [secretOf('rotated'), secretOf('shared')];
    b.links.publish();
    expect(await attempt(a, 'b')).toBe(true);
  });

  it('is closed with the name of either end', async () => {
    const { a, b } = await startPair();
    const { open, notes } = connectSender(a, 'b');
    await open();
    b.links.restart();
    await waitFor(() => notes.includes('lost'));
    await waitFor(() => a.links.reached.length === 0);
  });

  it('tells the peer when an instance stops which messages it has not taken', async () => {
    const { a, b } = await startPair();
    const { open, notes } = connectSender(a, 'b');
    const connection = await open();
    connection.send(1, message('taken'));
    await waitFor(() => b.received.length === 1);
    const stopped = b.links.close();
    connection.send(2, message('too late'));
    await stopped;
    await waitFor(() => notes.length === 2);
    expect(notes).toEqual(['acknowledged 1', 'refused 2']);
    expect(b.received).toEqual(['a 1 taken']);
  });

  it('is refused by what listens at the address of a peer without the secret', async () => {
    const addresses: Addresses = new Map();
    const a = await startLinkEnd({ name: 'a', addresses });
    const imposter = await startLinkEnd({ name: 'b', addresses, secrets: ['guessed'] });
    expect(await attempt(a, 'b')).toBe(false);
    expect(imposter.links.reached).toEqual([]);
  });
});

/** Whether an attempt to connect succeeds, without the pause after earlier ones. */
async function attempt(from: LinkEnd, to: string): Promise<boolean> {
  from.links.forget(to);
  from.links.to(to);
  const reaches = () => from.links.reaches(to);
  return waitFor(reaches, { deadlineMs: 700 }).catch(() => false);
}

describe('a broken network between two instances', () => {
  it.each([['toServer'], ['toClient']] as const)(
    'that swallows everything %s ends the connection, and a new one is made',
    async (direction) => {
      const { addresses, a, b } = await startPair();
      const proxy = await putProxyBefore(b, addresses);
      const { open, notes } = connectSender(a, 'b');
      const connection = await open();
      connection.send(1, message('arrives'));
      await waitFor(() => notes.length === 1);
      proxy.blackHoleAll(direction);
      connection.send(2, message('unknown'));
      await waitFor(() => notes.length === 2);
      expect(notes).toEqual(['acknowledged 1', 'lost']);
      const again = await open(2);
      again.send(2, message('again'));
      await waitFor(() => notes.length === 3);
      expect(notes[2]).toBe('acknowledged 2');
    },
  );

  it('that is cut loses no acknowledged message, and is tried again after a pause', async () => {
    const { addresses, a, b } = await startPair();
    const proxy = await putProxyBefore(b, addresses);
    const { open, notes } = connectSender(a, 'b');
    await open();
    await proxy.refuse();
    proxy.resetAll();
    await waitFor(() => notes.includes('lost'));
    for (let n = 0; n < 100; n += 1) a.links.to('b');
    await proxy.accept();
    await open();
    expect(proxy.openCount).toBe(1);
  });

  it('that is slow keeps the connection as long as bytes arrive', async () => {
    const { addresses, a, b } = await startPair(3_000);
    const proxy = await putProxyBefore(b, addresses);
    const { open, notes } = connectSender(a, 'b');
    const connection = await open();
    proxy.set({ toServer: { bytesPerSecond: 64 * 1024 } });
    connection.send(1, [Buffer.alloc(256 * 1024)]);
    await waitFor(() => notes.length > 0);
    expect(notes).toEqual(['acknowledged 1']);
    expect(b.received).toEqual(['a 1 262144 bytes']);
  });
});

describe('a stranger at the port for direct links', () => {
  const knock = async (port: number): Promise<Socket> => {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => undefined).resume();
    onTestFinished(() => void socket.destroy());
    return socket;
  };
  const closed = (socket: Socket): Promise<boolean> => waitFor(() => socket.closed, { what: 'the end of a stranger' });

  it.each([
    ['garbage', Buffer.alloc(64 * 1024, 7)],
    ['an HTTP request', Buffer.from('GET / HTTP/1.1\r\nHost: a\r\n\r\n')],
    ['100 MB', Buffer.alloc(100 * 1024 * 1024, 0x16)],
  ])('gets no answer to %s, and a peer is served meanwhile', async (_, bytes) => {
    const { a, b } = await startPair();
    const socket = await knock(b.port);
    let heard = 0;
    socket.on('data', (data) => {
      heard += data.length;
    });
    socket.write(bytes);
    await closed(socket);
    expect(heard).toBeLessThan(100); // a TLS alert at most
    const { open, notes } = connectSender(a, 'b');
    (await open()).send(1, message('served'));
    await waitFor(() => notes.includes('acknowledged 1'));
    expect(b.faults).toEqual([]);
  });

  it.each([
    ['an unknown secret', secretOf('guessed'), { from: 'x', to: 'b' }],
    ['the name of another instance', secretOf('shared'), { from: 'x', to: 'c' }],
    ['an identity with another key', undefined, { from: 'a', to: 'b' }],
  ])('is refused with %s', async (_, secret, peers) => {
    const { b } = await startPair();
    const proven = linkCredential(secret ?? secretOf('guessed'), peers);
    const { identity } = linkCredential(secretOf('shared'), peers);
    const credential = secret === undefined ? { identity, psk: proven.psk } : proven;
    const socket = connectTls({
      host: '127.0.0.1',
      port: b.port,
      minVersion: 'TLSv1.3',
      ciphers: 'TLS_AES_128_GCM_SHA256',
      pskCallback: () => credential,
      rejectUnauthorized: false,
    });
    let isSecure = false;
    socket.on('secureConnect', () => {
      isSecure = true;
    });
    socket.on('error', () => undefined);
    await closed(socket);
    expect([isSecure, b.links.reached]).toEqual([false, []]);
  });

  it('gets nothing by a repeated handshake', async () => {
    const { addresses, a, b } = await startPair();
    const sent: Buffer[] = [];
    const relayed = await knock(b.port);
    relayed.destroy();
    const proxy = await putProxyBefore(b, addresses);
    const { createServer } = await import('node:net');
    const recorder = createServer((client) => {
      const server = connect(proxy.port, '127.0.0.1');
      client.on('data', (data: Buffer) => {
        sent.push(data);
        server.write(data);
      });
      client.on('error', () => undefined);
      server.on('error', () => undefined);
      server.pipe(client);
    });
    await new Promise<void>((resolve) => recorder.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void recorder.close());
    const address = recorder.address();
    addresses.set('b', `tcp:127.0.0.1:${typeof address === 'object' ? address?.port : 0}`);
    const { open, notes } = connectSender(a, 'b');
    (await open()).send(1, message('secret'));
    await waitFor(() => notes.length > 0);
    expect(Buffer.concat(sent).includes('secret')).toBe(false);
    const stranger = await knock(b.port);
    for (const data of sent) stranger.write(data);
    await closed(stranger);
    expect(b.received).toEqual(['a 1 secret']);
  });

  it('[P8] cannot hold many connections, or one for long', async () => {
    const { a, b } = await startPair();
    const strangers = await Promise.all(Array.from({ length: 60 }, () => knock(b.port)));
    await waitFor(() => strangers.filter((each) => each.closed).length >= 28, { what: 'the limit of strangers' });
    for (const each of strangers) if (!each.closed) each.write(Buffer.from([0x16, 0x03, 0x01]));
    await Promise.all(strangers.map(closed));
    const { open, notes } = connectSender(a, 'b');
    (await open()).send(1, message('served'));
    await waitFor(() => notes.includes('acknowledged 1'));
  });
});

it('a peer that cannot be reached at its address is reported once', async () => {
  const addresses: Addresses = new Map();
  const a = await startLinkEnd({ name: 'a', addresses, secrets: ['one'] });
  await startLinkEnd({ name: 'b', addresses, secrets: ['another'] });
  const isReported = (): boolean => {
    a.links.to('b');
    a.links.to('no-address');
    return a.unreachable.length > 0;
  };
  await waitFor(isReported, { what: 'the report' });
  for (let n = 0; n < 20; n += 1) {
    a.links.to('b');
    await delay(50);
  }
  expect(a.unreachable).toEqual([`b ${addresses.get('b')}`]);
});
