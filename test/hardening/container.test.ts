import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { rssMiB } from '../fault/memory.ts';
import { limitMemory, type MemoryLimit } from '../floods/memory-limit.ts';
import { type Gateway, root, startGateway } from '../support/gateway.ts';
import { initialize, post, type Session } from '../support/http-client.ts';
import { waitFor } from '../support/wait-for.ts';

/**
 * All sessions together (P8): each may leave as much behind as its own limits allow, at a server that does not read. The
 * gateway runs in a container's memory where the test may create a control group.
 */
const containerMiB = 512;
const sessions = 40;
const requestsOfSession = 4;
/** 600 MiB in all. */
const padding = 'x'.repeat(3_900 * 1_024);

const call = (id: number, filling: string): string =>
  JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'wait', arguments: { filling } } });

/** A server that answers `initialize`, and calls once it may. */
const waiting: (() => void)[] = [];
let answersCalls = false;
async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method !== 'POST') return void response.writeHead(405).end();
  const body = await text(request);
  const id = /"id":(\d+)/.exec(body)?.[1];
  const isCall = body.includes('"tools/call"');
  if (isCall) server.emit('call');
  if (isCall && !answersCalls) await new Promise<void>((resolve) => waiting.push(resolve));
  if (id === undefined) return void response.writeHead(202).end();
  const serverInfo = { name: 's', version: '1' };
  const result = isCall ? {} : { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo };
  response.writeHead(200, { 'Content-Type': 'application/json', 'Mcp-Session-Id': 's' });
  response.end(`{"jsonrpc":"2.0","id":${id},"result":${JSON.stringify(result)}}`);
}

const server = createServer((request, response) => void answer(request, response).catch(() => response.destroy()));
let memory: MemoryLimit | undefined;
let gateway: Gateway;

beforeAll(async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  memory = limitMemory(containerMiB);
  gateway = await startGateway({
    program: [...(memory?.inside ?? []), process.execPath, '--max-semi-space-size=32', `${root}dist/main.js`],
    args: [`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`],
    isStoppedWithTest: false,
  });
});
afterAll(async () => {
  await gateway?.stop();
  await memory?.remove();
  server.closeAllConnections();
  server.close();
});

/** Sends a call, and leaves once the server has it. Resolves with the status if the call is refused. */
async function leave(url: string, { id }: Session, number: number): Promise<number | undefined> {
  const leaving = new AbortController();
  const arrived = once(server, 'call', { signal: leaving.signal }).then(
    () => undefined,
    () => undefined,
  );
  const headers = {
    'Content-Type': 'application/json',
    Accept: 'application/json, text/event-stream',
    'Mcp-Session-Id': id,
  };
  const refused = fetch(url, { method: 'POST', body: call(number, padding), headers, signal: leaving.signal }).then(
    ({ status }) => status,
    () => undefined,
  );
  const status = await Promise.race([refused, arrived]);
  leaving.abort();
  return status;
}

test('[G-10] [S-21] [P8] what all clients leave behind fits into a container, and the memory returns', async () => {
  const url = `${gateway.baseUrl}/mcp`;
  const honest = await initialize(url);
  const statuses: (number | undefined)[] = [];
  const opened: Session[] = [];
  for (let n = 0; n < sessions; n += 1) {
    const session = await initialize(url);
    opened.push(session);
    for (let id = 10; id < 10 + requestsOfSession; id += 1) statuses.push(await leave(url, session, id));
  }
  expect(statuses).toContain(503);
  expect(rssMiB(gateway.pid)).toBeLessThan(containerMiB - 100);
  // The requests of others have a part of the bytes.
  const small = post(url, call(2, 'small'), { 'Mcp-Session-Id': honest.id });
  expect(waiting.length).toBeGreaterThan(sessions / 4);
  answersCalls = true;
  for (const go of waiting.splice(0)) go();
  expect((await small).status).toBe(200);
  await waitFor(async () => (await post(url, call(3, padding), { 'Mcp-Session-Id': honest.id })).status === 200);
  for (const session of opened) await session.delete();
});
