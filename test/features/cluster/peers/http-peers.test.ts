import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createMessageBatch } from '../../../../src/core/reply/event-batch.ts';
import { accepted, faultAnswer } from '../../../../src/core/reply/reply.ts';
import { EventCutter } from '../../../../src/features/cluster/forward/received-events.ts';
import {
  answerNonce,
  nonceBytes,
  ownVersions,
  peerCredential,
} from '../../../../src/features/cluster/peers/peer-proof.ts';
import { beat } from '../../../../src/features/cluster/peers/peer-request.ts';
import { requestHeader } from '../../../../src/features/cluster/peers/peer-server.ts';
import { loadMs, waitFor } from '../../../support/wait-for.ts';
import { createPeers, listening, post, secret } from './peers-fixture.ts';

describe.each(['unix', 'tls'] as const)('two instances over %s', (kind) => {
  it('[P1] pass a request on as it is, and answer it with JSON', async () => {
    const { join } = await createPeers(kind);
    const [a, b] = [await join('a'), await join('b')];
    const text = `{"ü": ${'x'.repeat(100_000)}}`;
    const forwarded = { authorization: 'Bearer ü' } as never;
    const asked = b.ask('a', { ...post, again: true, request: { ...post.request, forwarded } } as never, text);
    await a.asked(1);
    expect(a.served[0]).toMatchObject({ request: { ...post, again: true, request: { forwarded } }, body: text });
    a.served[0]?.reply.answer({ kind: 'json', text: Buffer.from(text), headers: { h: 'x' }, status: 400 });
    expect(await asked.over).toBe('answered json');
    expect(asked.answer).toEqual({ kind: 'json', text: Buffer.from(text), headers: { h: 'x' }, status: 400 });
  });

  it('pass on every other answer, and a denial', async () => {
    const { join } = await createPeers(kind);
    const [a, b] = [await join('a'), await join('b')];
    const fault = { ...faultAnswer('server_busy', 'ü', { a: 1 }), isReported: true } as const;
    for (const answer of [accepted, { kind: 'removed' }, { kind: 'nothing' }, fault] as const) {
      const asked = b.ask('a');
      await a.asked(1);
      a.served.pop()?.reply.answer(answer);
      await asked.over;
      expect(asked.answer).toEqual(answer);
    }
    for (const why of ['moved', 'ending'] as const) {
      const asked = b.ask('a');
      await a.asked(1);
      a.served.pop()?.reply.deny(why);
      expect(await asked.over).toBe(`denied ${why}`);
    }
  });

  it('pass on a stream as it is written, and how it ends', async () => {
    const { join } = await createPeers(kind);
    const [a, b] = [await join('a'), await join('b')];
    for (const [end, heard] of [
      ['end', 'ended'],
      ['handOver', 'moved'],
      ['cut', 'failed lost'],
    ] as const) {
      const asked = b.ask('a', listening);
      await a.asked(1);
      const sink = a.served.pop()?.reply.stream({ h: 'x' });
      const batch = createMessageBatch(Buffer.from('"ü"'));
      sink?.write(batch);
      await waitFor(() => asked.text === batch.text.toString(), { what: 'the event' });
      expect(asked.headers).toEqual({ h: 'x' });
      sink?.[end]?.();
      expect(await asked.over).toBe(heard);
    }
  });

  it('[P8] slow the owner down while the ingress does not read, and lose nothing', async () => {
    const { join } = await createPeers(kind);
    const [a, b] = [await join('a'), await join('b')];
    const asked = b.ask('a');
    asked.reads = false;
    await a.asked(1);
    const sink = a.served[0]?.reply.stream();
    let drains = 0;
    sink?.onDrain(() => {
      drains += 1;
    });
    const batch = createMessageBatch(Buffer.from(JSON.stringify('x'.repeat(64 * 1024))));
    let written = 0;
    while (sink?.write(batch) === true && written < 1_000) written += 1;
    expect(written).toBeLessThan(500); // 32 MiB
    asked.reads = true;
    await waitFor(
      () => {
        asked.call.resume();
        return drains > 0;
      },
      { what: 'room', intervalMs: 5 },
    );
    sink?.end();
    await asked.over;
    expect(asked.text.length).toBe((written + 1) * batch.text.length);
  });

  it('tell the owner when the client has left', async () => {
    const { join } = await createPeers(kind);
    const [a, b] = [await join('a'), await join('b')];
    const asked = b.ask('a');
    await a.asked(1);
    const gone = new Promise<void>((resolve) => a.served[0]?.reply.onGone(resolve));
    asked.call.abort();
    await gone;
    expect([a.served[0]?.reply.isGone, asked.heard]).toEqual([true, []]);
  });

  it('[P3] know that a request was not sent to an instance that is gone, and that one under way is lost', async () => {
    const { join } = await createPeers(kind);
    const [a, b] = [await join('a'), await join('b')];
    const asked = b.ask('a');
    await a.asked(1);
    b.peers.forget('a');
    expect(await asked.over).toBe('failed lost');
    expect(await b.ask('nobody').over).toBe('failed unsent');
    await a.peers.close();
    expect(await b.ask('a').over).toBe('failed unsent');
  });

  it('deny what is for another name of the instance', async () => {
    const { join } = await createPeers(kind);
    const [a, b] = [await join('a'), await join('b')];
    const first = b.ask('a');
    await a.asked(1);
    a.served[0]?.reply.answer(accepted);
    await first.over;
    await a.rename('c');
    expect(await b.ask('a').over).toBe('denied moved');
    const second = b.ask('c');
    await a.asked(2);
    a.served[1]?.reply.answer(accepted);
    expect(await second.over).toBe('answered accepted');
  });
});

const ping = `POST / HTTP/1.1\r\nhost: x\r\n${requestHeader}: {"kind":"ping","request":{}}\r\ncontent-length: 0\r\n\r\n`;

/** Connects to the socket of an instance, as a stranger can who reaches it, and asks whether the instance answers. */
function ask(socketPath: string, answerTo: (nonce: Buffer) => string, request = ping): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(socketPath);
    let text = '';
    socket.once('data', (nonce: Buffer) => {
      socket.on('data', (part: Buffer) => {
        text += part.toString();
        if (text.endsWith('\r\n\r\n')) socket.destroy();
      });
      socket.write(`${answerTo(nonce)}${request}`);
    });
    socket.on('error', reject);
    socket.on('close', () => {
      const [, status, kind] = /^HTTP\/1.1 (\d+)[\s\S]*gangway-answer: (\w+)/.exec(text) ?? [];
      resolve(status === undefined ? 'closed' : `${status} ${kind}`);
    });
  });
}

describe('[P11] who is no instance of the cluster', () => {
  const names = { from: 'b', to: 'a', version: 5 };

  it('is refused, and counted: strangers, replays, wrong keys, other versions', async () => {
    const { instances, directory, join: join_ } = await createPeers('unix');
    const a = await join_('a');
    const published = await instances.addressOf('a');
    const path = join(directory, /unix:(\S+)/.exec(published ?? '')?.[1] ?? '');
    const own = peerCredential(secret, names);
    let recorded = '';
    const answers = [
      await ask(path, () => ''),
      await ask(path, () => 'x'.repeat(2_000)),
      await ask(path, () => 'no proof\n'),
      await ask(path, (nonce) => answerNonce(peerCredential(Buffer.alloc(32, 8), names), nonce)),
      await ask(path, (nonce) => answerNonce(own, nonce).replace(' b ', ' x ')),
      await ask(path, (nonce) => answerNonce(own, nonce).replace(/ 5 /, ' 999 ')),
      await ask(path, (nonce) => {
        recorded = answerNonce(own, nonce);
        return recorded;
      }),
      await ask(path, () => recorded),
      await ask(path, (nonce) => answerNonce(own, nonce), ping.replace('{', '')),
    ];
    expect(answers).toEqual([
      '403 malformed',
      '403 malformed',
      '403 malformed',
      '403 stranger',
      '403 stranger',
      '403 version',
      '200 accepted',
      '403 stranger',
      'closed',
    ]);
    expect(a.events).toEqual(
      ['malformed', 'malformed', 'malformed', 'stranger', 'stranger', 'version', 'stranger', 'malformed'].map(
        (why) => `refused ${why}`,
      ),
    );
    expect(a.served).toEqual([]);
  });

  it('gets no connection for long if it proves nothing', async () => {
    const { instances, directory, join: join_ } = await createPeers('unix');
    await join_('a');
    const path = join(directory, /unix:(\S+)/.exec((await instances.addressOf('a')) ?? '')?.[1] ?? '');
    const socket = connect(path);
    socket.resume();
    await new Promise((resolve) => socket.once('close', resolve));
  });

  it('gets no TLS connection without the key, and few connections that prove nothing', async () => {
    const { instances, join: join_ } = await createPeers('tls');
    const a = await join_('a');
    const stranger = await join_('s', { secrets: { all: async () => [Buffer.alloc(32, 9)], reread: async () => [] } });
    expect(await stranger.ask('a').over).toBe('failed unsent');
    await waitFor(() => a.events.includes('refused stranger'), { what: 'the refusal' });
    const port = Number(/:(\d+)$/.exec((await instances.addressOf('a')) ?? '')?.[1]);
    const sockets: Socket[] = [];
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy();
    });
    let closed = 0;
    for (let count = 0; count < 100; count += 1) {
      const socket = connect(port, '127.0.0.1');
      socket.on('error', () => undefined);
      socket.on('close', () => {
        closed += 1;
      });
      sockets.push(socket);
    }
    await waitFor(() => closed >= 60, { what: 'the end of most connections' });
    expect(a.served).toEqual([]);
  });

  it('[P3] that ends while a connection to it is proven ends that connection alone', async () => {
    const { instances, directory, join: join_ } = await createPeers('unix');
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.write(Buffer.alloc(nonceBytes), () => socket.destroy());
    });
    await new Promise<void>((resolve) => server.listen(join(directory, '0123456789abcdef.sock'), resolve));
    onTestFinished(() => void server.close());
    await instances.join('gone');
    await instances.publishAddress('gone', `${ownVersions} unix:0123456789abcdef.sock`);
    const a = await join_('a');
    for (let count = 0; count < 20; count += 1) expect(await a.ask('gone').over).toMatch(/^failed /);
  });

  it('that runs another version is named, and gets nothing', async () => {
    const { instances, join: join_ } = await createPeers('unix', 600);
    await instances.join('old');
    await instances.publishAddress('old', 'unix:0123456789abcdef.sock');
    const a = await join_('a');
    await waitFor(() => a.events.length > 0, { what: 'the report' });
    expect(a.events[0]).toMatch(/^unreachable old: It runs an incompatible version of the gateway/);
    expect(await a.ask('old').over).toBe('failed refused');
    expect(a.peers.states.unreachable).toEqual([{ instance: 'old', address: 'unix:0123456789abcdef.sock' }]);
  });
});

describe('[P3] [P7] an instance that falls silent', () => {
  /** A relay before an instance, which can hold back everything. */
  async function createRelay(target: () => number) {
    let isHeld = false;
    const held: (() => void)[] = [];
    const connections: { readonly sockets: readonly Socket[]; bytes: number; isLost: boolean }[] = [];
    const pass = (connection: (typeof connections)[number], [from, to]: readonly [Socket, Socket]): void => {
      from.on('data', (part) => {
        connection.bytes += part.length;
        if (connection.isLost) return;
        if (isHeld) held.push(() => to.write(part));
        else to.write(part);
      });
      from.on('close', () => to.destroy());
      from.on('error', () => to.destroy());
    };
    const server = createServer((socket) => {
      const other = connect(target(), '127.0.0.1');
      const connection = { sockets: [socket, other], bytes: 0, isLost: false };
      connections.push(connection);
      pass(connection, [socket, other]);
      pass(connection, [other, socket]);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => {
      server.close();
      for (const socket of connections.flatMap(({ sockets }) => sockets)) socket.destroy();
    });
    return {
      port: (server.address() as { port: number }).port,
      hold: () => {
        isHeld = true;
      },
      /** How many connections there were. */
      connections: () => connections.length,
      /** The connections on which so many bytes came pass nothing on any more. Others do, such as those of pings. */
      lose: (bytes: number): number => {
        const found = connections.filter((connection) => connection.bytes >= bytes);
        for (const connection of found) connection.isLost = true;
        return found.length;
      },
      release: () => {
        isHeld = false;
        for (const act of held.splice(0)) act();
      },
    };
  }

  /**
   * Two instances of which one reaches the other through a relay. An instance is silent after half a lease: this process
   * may stand still for less, on a machine that has other work.
   */
  async function createRelayed() {
    const { instances, join: join_ } = await createPeers('tls', loadMs);
    let target = 0;
    const relay = await createRelay(() => target);
    const network = { host: '127.0.0.1', port: 0, advertised: `127.0.0.1:${relay.port}` };
    const real = instances.publishAddress;
    const a = await join_('a', { addresses: { network: { ...network, advertised: '127.0.0.1' } } });
    target = Number(/:(\d+)$/.exec((await instances.addressOf('a')) ?? '')?.[1]);
    await real('a', ((await instances.addressOf('a')) ?? '').replace(`${target}`, `${relay.port}`));
    return { a, b: await join_('b'), relay };
  }

  it('gets no new requests, is named, and loses those under way within a lease; all is well when it answers again', async () => {
    const { a, b, relay } = await createRelayed();
    const stream = b.ask('a');
    await a.asked(1);
    await waitFor(() => b.peers.states.reachable === 1, { what: 'the first answer' });
    const before = b.events.length; // none, unless this process stood still

    relay.hold();
    expect(await stream.over).toBe('failed lost');
    expect(await b.ask('a').over).toBe('failed unsent');
    expect(a.served).toHaveLength(1);
    expect(b.events.slice(before)).toEqual(['unreachable a: It does not answer at its address.']);
    expect(b.peers.states.unreachable.map(({ instance }) => instance)).toEqual(['a']);
    relay.release();
    await waitFor(() => b.events.length > before + 1, { what: 'the instance' });
    expect(b.events[before + 1]).toBe('reachable a');
    const again = b.ask('a');
    await a.asked(2);
    a.served[1]?.reply.answer(accepted);
    expect(await again.over).toBe('answered accepted');
  });

  it('[P3] is noticed if only one connection passes nothing on, whether its request has begun a stream or not', async () => {
    const { a, b, relay } = await createRelayed();
    const body = 'x'.repeat(100_000);
    const [stream, call] = [b.ask('a', listening, body), b.ask('a', post, body)];
    await a.asked(2);
    const sink = a.servedAs('listen').stream();
    sink.write(createMessageBatch(Buffer.from('1')));
    await waitFor(() => stream.text !== '', { what: 'an event' });
    expect(relay.lose(body.length)).toBe(2);
    expect(await Promise.all([stream.over, call.over])).toEqual(['failed lost', 'failed lost']);
    // The instance answers on other connections. It seems silent for a moment if this process stood still.
    await waitFor(() => b.peers.states.reachable === 1, { what: 'the instance' });
  });

  it('[P8] is asked on as many connections as there are requests at once, and on those again, also after a stream', async () => {
    const { a, b, relay } = await createRelayed();
    for (let count = 1; count <= 20; count += 1) {
      const asked = b.ask('a', count % 2 === 0 ? post : listening);
      await a.asked(count);
      if (count % 2 === 0) a.served.at(-1)?.reply.answer(accepted);
      else a.served.at(-1)?.reply.stream().end();
      await asked.over;
    }
    expect(relay.connections()).toBeLessThanOrEqual(1 + 6); // up to six pings may be under way
  });

  it('[P3] is not lost while it has nothing to say', async () => {
    const { a, b } = await createRelayed();
    const [stream, call] = [b.ask('a', listening), b.ask('a')];
    await a.asked(2);
    const sink = a.servedAs('listen').stream();
    await waitFor(() => stream.text.length > 3 * beat.length, { what: 'signs of life' });
    a.servedAs('post').answer(accepted);
    sink.end();
    expect(await Promise.all([stream.over, call.over])).toEqual(['ended', 'answered accepted']);
    expect(new EventCutter().take(Buffer.from(stream.text))).toBeUndefined();
  });
});
