import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freeze, thaw } from '../support/freeze.ts';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { initialize, type Message, post } from '../support/http-client.ts';
import { serverEntry, type ViewFile, writeViewFile } from '../support/view-file.ts';
import { withDeadline } from '../support/wait-for.ts';
import { connectWebSocket } from '../support/websocket-client.ts';

/** Long enough that a busy machine brings everything about before the gateway stands still. */
const limitMs = 6_000;
const standstillMs = limitMs + 1_500;

const initializeText = JSON.stringify({
  ...{ jsonrpc: '2.0', id: 1, method: 'initialize' },
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } },
});
const opened = { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } };
const called = { content: [] };
const results: Readonly<Record<string, object>> = { initialize: opened, 'tools/call': called };

const answerOf = ({ id, method }: Message): string => {
  const error = { code: -32601, message: 'Method not found' };
  return JSON.stringify({ jsonrpc: '2.0', id, ...(results[method] ? { result: results[method] } : { error }) });
};

/** What peers of the gateway do once it stands still. */
const waiting: (() => void)[] = [];
const onWaiting = { count: 0, resolve: (): void => undefined };
const later = (act: () => void): void => {
  waiting.push(act);
  if (waiting.length === onWaiting.count) onWaiting.resolve();
};

/** A STDIO server that gives its messages to the test. */
const stdioServer = (port: number, held: string): readonly string[] => [
  process.execPath,
  '-e',
  `const test = require('node:net').connect(${port}, '127.0.0.1', () => { test.write('${held}\\n'); process.stdin.pipe(test); });
   test.pipe(process.stdout); process.stdin.on('end', () => process.exit());`,
];

/** Answers for STDIO servers. Each names the method that it answers later. */
const control = createServer((socket) => {
  let rest = '';
  let held: string | undefined;
  socket.on('error', () => undefined);
  socket.on('data', (data) => {
    const lines = `${rest}${data}`.split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      if (held === undefined) {
        held = line;
        continue;
      }
      const message: Message = JSON.parse(line);
      const answer = (): void => void socket.write(`${answerOf(message)}\n`);
      if (message.id === undefined) continue;
      if (message.method === held) later(answer);
      else answer();
    }
  });
});

/** A server at a URL; its path names the method that it answers later. */
const remote = createHttpServer(async (request, response) => {
  let text = '';
  for await (const chunk of request) text += chunk;
  if (request.method !== 'POST') return void response.writeHead(405).end();
  const message: Message = JSON.parse(text);
  if (message.id === undefined) return void response.writeHead(202).end();
  const headers = { 'content-type': 'application/json', 'mcp-session-id': 'one' };
  const answer = (): void => void response.writeHead(200, headers).end(answerOf(message));
  if (request.url === `/${message.method}`) later(answer);
  else answer();
});

let gateway: Gateway;

const open = async (server: string): Promise<unknown> =>
  (await post(`${gateway.baseUrl}/${server}/mcp`, initializeText)).messages.at(-1);
const call = async (server: string): Promise<unknown> => {
  const session = await initialize(`${gateway.baseUrl}/${server}/mcp`);
  return (await session.request('tools/call', { name: 'a' })).messages.at(-1);
};

/** Sends `initialize` in two parts. */
async function sendInParts(splitAt: (head: string) => number): Promise<unknown> {
  const head = [
    'POST /quick/mcp HTTP/1.1',
    'Host: 127.0.0.1',
    'Content-Type: application/json',
    'Accept: application/json',
    'Connection: close',
    `Content-Length: ${initializeText.length}`,
    '\r\n',
  ].join('\r\n');
  const text = head + initializeText;
  const socket = connect(Number(new URL(gateway.baseUrl).port), '127.0.0.1');
  await once(socket, 'connect');
  const at = splitAt(head);
  // A request on another connection is read after this one.
  socket.write(text.slice(0, at), async () => {
    await fetch(`${gateway.baseUrl}/nothing`);
    later(() => socket.write(text.slice(at)));
  });
  let response = '';
  for await (const chunk of socket) response += chunk;
  return JSON.parse(response.slice(response.indexOf('{')));
}

async function openWebSocket(): Promise<unknown> {
  const client = await connectWebSocket(`${gateway.baseUrl.replace('http', 'ws')}/quick/ws`);
  const answer = client.next(() => true, { deadlineMs: 60_000 });
  later(() => client.send(initializeText));
  return answer.finally(() => client.peer.terminate());
}

/** Each is under way when the gateway stops, and its peer goes on meanwhile. */
const rows: Readonly<Record<string, { readonly start: () => Promise<unknown>; readonly result: object }>> = {
  'the start of a STDIO server': { start: () => open('stdio-start'), result: opened },
  'a call to a STDIO server': { start: () => call('stdio-call'), result: called },
  'the start of a server at a URL': { start: () => open('remote-start'), result: opened },
  'a call to a server at a URL': { start: () => call('remote-call'), result: called },
  'the head of a request': { start: () => sendInParts((head) => head.length - 9), result: opened },
  'the body of a request': { start: () => sendInParts((head) => head.length + 9), result: opened },
  'the first message over WebSocket': { start: openWebSocket, result: opened },
};

describe('[F29] a gateway that stands still for longer than its limits reads what arrived before a limit is over', () => {
  const outcomes = new Map<string, Promise<unknown>>();
  let file: ViewFile;

  beforeAll(async () => {
    const listening = [control, remote as Server].map(async (server) => {
      await once(server.listen(0, '127.0.0.1'), 'listening');
      return (server.address() as AddressInfo).port;
    });
    const [port = 0, remotePort = 0] = await Promise.all(listening);
    const era = { era: 'legacy' };
    file = await writeViewFile(
      {
        quick: serverEntry(stdioServer(port, 'none'), era),
        'stdio-start': serverEntry(stdioServer(port, 'initialize'), era),
        'stdio-call': serverEntry(stdioServer(port, 'tools/call'), era),
        'remote-start': { url: `http://127.0.0.1:${remotePort}/initialize`, transport: 'http', ...era },
        'remote-call': { url: `http://127.0.0.1:${remotePort}/tools/call`, transport: 'http', ...era },
      },
      {},
    );
    const limits = ['--defaults.timeouts.start', `${limitMs}ms`, '--timeouts.requestIdle', `${limitMs}ms`];
    gateway = await startGateway({ args: [...file.args, ...limits], isStoppedWithTest: false });
    const started = new Promise<void>((resolve) =>
      Object.assign(onWaiting, { count: Object.keys(rows).length, resolve }),
    );
    for (const [name, { start }] of Object.entries(rows)) {
      const outcome = start();
      outcome.catch(() => undefined);
      outcomes.set(name, outcome);
    }
    await withDeadline(started, { deadlineMs: limitMs - 500, what: 'all to be under way' });
    await freeze(gateway.pid);
    for (const act of waiting) act();
    await delay(standstillMs); // the standstill itself, not a wait for anything
    thaw(gateway.pid);
  }, 60_000);

  afterAll(async () => {
    await gateway?.stop();
    control.close();
    remote.close();
    await file.remove();
  });

  test.each(Object.entries(rows))('%s', async (name, { result }) => {
    expect(await withDeadline(outcomes.get(name) as Promise<unknown>)).toMatchObject({ result });
  });
});
