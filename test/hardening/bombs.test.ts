import { once } from 'node:events';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { runInThisContext } from 'node:vm';
import { gzipSync } from 'node:zlib';
import { buildSync } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import WebSocket from 'ws';
import { longestLineBytes } from '../../src/core/backend/backend.ts';
import type * as posted from '../../src/core/protocol/message/read-messages.ts';
import { measureTwice, watch } from '../fault/memory.ts';
import { costOf, msHere } from '../support/cpu-time.ts';
import { type Gateway, root, startGateway } from '../support/gateway.ts';
import { post } from '../support/http-client.ts';
import { connectRaw, requestText } from './raw-http.ts';
import { openRecorded, type RecordedSession, withRecorder } from './recorder.ts';

const mebibyte = 2 ** 20;
const size = 4 * mebibyte;

/** A request of nearly the size that a body may have, with these params. */
const request = (params: string): string => `{"jsonrpc":"2.0","id":1,"method":"x","params":${params}}`;
const filled = (piece: string): string => piece.repeat(Math.floor((size - 200) / piece.length));

/** Each is within the limit of a body. */
const bombs: readonly (readonly [string, string])[] = [
  ['lists in lists', filled('[')],
  ['objects in objects', filled('{"a":')],
  ['lists in params', request(`{"a":${filled('[')}`)],
  ['closed lists in params', request(`{"a":${filled('[').slice(size / 2)}${filled(']').slice(size / 2)}}`)],
  ['closing brackets', filled(']')],
  ['many small values', request(`{"a":[${filled('0,')}0]}`)],
  ['many keys', request(`{${Array.from({ length: 300_000 }, (_, n) => `"k${n}":0`).join(',')}}`)],
  ['one key again and again', request(`{"b":{${filled('"a":0,')}"a":0}}`)],
  ['one key of params again and again', request(`{${filled('"a":0,')}"a":0}`)],
  ['escapes', request(`{"a":"${filled('\\u0041')}"}`)],
  ['backslashes', request(`{"a":"${filled('\\\\')}"}`)],
  ['a backslash at the end', request(`{"a":"${filled('\\')}`)],
  ['an escaped key', `{"${filled('\\u0061')}":0}`],
  ['a number', request(`{"a":${filled('9')}}`)],
  ['a number that is none', request(`{"a":1${filled('e')}}`)],
  ['blanks', filled(' ')],
  ['blanks in a message', `{${filled(' ')}"jsonrpc":"2.0","id":1,"method":"x"}`],
  ['a batch', `[${filled('{},')}{}]`],
  ['a batch of requests', `[${filled('{"jsonrpc":"2.0","id":1,"method":"x"},')}0]`],
  ['an id', `{"jsonrpc":"2.0","id":"${filled('a')}","method":"x"}`],
  ['a method', `{"jsonrpc":"2.0","id":1,"method":"${filled('a')}"}`],
  ['bytes that are no UTF-8', Buffer.alloc(size, 0xff).toString('latin1')],
];

/** So many MiB of blanks in gzip, which takes 1 KiB for each. Members one after the other are one content. */
const gzipOf = (mebibytes: number): Buffer => {
  const member = gzipSync(Buffer.alloc(mebibyte, 0x20));
  return Buffer.concat(Array.from({ length: mebibytes }, () => member));
};

/** Built as it is run, without what the test runner puts around every name of a module. */
const { outputFiles } = buildSync({
  ...{ entryPoints: [`${root}src/core/protocol/message/read-messages.ts`], bundle: true, write: false },
  ...{ platform: 'node', format: 'cjs' },
});
const built: { exports: Partial<typeof posted> } = { exports: {} };
runInThisContext(`(module, require) => {${outputFiles[0]?.text}}`)(built, createRequire(import.meta.url));
const { readMessages } = built.exports as typeof posted;

/** JSON.parse takes four units for so much. */
const maxCost = 6;

describe('a body within the limits, made to cost much', () => {
  it.each(bombs)('[S17] 4 MiB are read or refused at little cost: %s', (_, text) => {
    const bytes = Buffer.from(text, 'latin1');
    expect(bytes.length).toBeGreaterThan(3 * mebibyte);
    expect(costOf(() => void readMessages(bytes, 100), maxCost, 10)).toBeLessThan(maxCost);
  });
});

describe.runIf(process.platform === 'linux')('a gateway under bombs stays small and answers others', () => {
  let gateway: Gateway;
  let session: RecordedSession;
  beforeAll(async () => {
    gateway = await startGateway(withRecorder());
    session = await openRecorded(gateway.url);
  });
  afterAll(async () => void (await gateway?.stop()));

  const send = (body: string | Buffer, headers: Record<string, string> = {}) =>
    post(gateway.url, body, { 'Mcp-Session-Id': session.id, ...headers });

  /** Bodies of 4 MiB are held while they come; nothing of them stays. */
  const maxHealthMs = msHere(100);
  const expectSmall = async (work: () => Promise<unknown>) => {
    const isFine = (seen: Awaited<ReturnType<typeof watch>>) => seen.grownMiB < 100 && seen.p99Ms < maxHealthMs;
    const seen = await measureTwice(() => watch(gateway, work()), isFine);
    expect(seen.grownMiB).toBeLessThan(100);
    expect(seen.p99Ms).toBeLessThan(maxHealthMs);
  };

  it('[S17] of depth and of many tokens, each refused', async () => {
    await expectSmall(async () => {
      for (const [name, text] of bombs.slice(0, 5)) {
        for (let n = 0; n < 5; n++) expect([name, (await send(text)).status]).toEqual([name, 400]);
      }
    });
    expect(await session.lines()).toEqual([]);
  });

  it('[S17] of size: a body without end is refused and not kept', async () => {
    await expectSmall(async () => {
      const connection = await connectRaw(gateway.port);
      const head = [`Mcp-Session-Id: ${session.id}`, 'Host: localhost', 'Content-Type: application/json'];
      connection.write(requestText('POST /mcp HTTP/1.1', [...head, 'Accept: */*', 'Transfer-Encoding: chunked']));
      const chunk = Buffer.concat([Buffer.from('100000\r\n'), Buffer.alloc(mebibyte, 0x20), Buffer.from('\r\n')]);
      for (let n = 0; n < 256 && !connection.socket.destroyed; n++) {
        if (!connection.socket.write(chunk)) {
          await Promise.race([once(connection.socket, 'drain'), connection.closed()]);
        }
      }
      expect((await connection.answer()).status).toBe(413);
      connection.drop();
    });
  });

  it('[S17] of gzip, from a client: 256 MiB in 256 KiB are not inflated', async () => {
    const bomb = gzipOf(256);
    await expectSmall(async () => {
      for (let n = 0; n < 10; n++) expect((await send(bomb, { 'Content-Encoding': 'gzip' })).status).toBe(415);
      // Without the header they are what they are: no JSON.
      expect((await send(bomb)).status).toBe(400);
    });
  });

  it('[S17] of gzip, on a WebSocket: compression is not agreed on', async () => {
    const socket = new WebSocket(`ws://127.0.0.1:${gateway.port}/ws`, 'mcp', { perMessageDeflate: true });
    await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
    expect(socket.extensions).toBe('');
    socket.terminate();
  });
});

it.runIf(process.platform === 'linux')(
  '[S17] a bomb of gzip from a server at a URL is read as far as a message may be long',
  async () => {
    const bomb = gzipOf(1024);
    const encodings: unknown[] = [];
    const server = createServer((incoming, outgoing) => {
      encodings.push(incoming.headers['accept-encoding']);
      incoming.resume();
      outgoing.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end(bomb);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
    // A server that is to get headers of clients is not tried at the start.
    const gateway = await startGateway({ args: ['--transport', 'http', '--defaults.forwardHeaders', 'x-a', url] });
    const initialize = {
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2025-11-25', capabilities: {} },
    };
    // JSON alone: an answer that takes long would be a stream, whose status is 200.
    const asked = async () =>
      expect((await post(gateway.url, initialize, { Accept: 'application/json' })).status).toBe(502);
    const { grownMiB } = await watch(gateway, asked());
    expect(grownMiB).toBeLessThan(4 * (longestLineBytes / mebibyte));
    expect(new Set(encodings)).toEqual(new Set(['identity']));
  },
);
