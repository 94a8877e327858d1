// What a filter hides cannot be reached through a view either: filters of the server, and filters of the view.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openAnswered } from '../support/answered-session.ts';
import { attemptsAt, revisionOf } from '../support/filter-attempts.ts';
import { root } from '../support/gateway.ts';
import type { Session } from '../support/http-client.ts';
import { type LocalGateway, startLocalGateway } from '../support/local-gateway.ts';
import { callModern } from '../support/modern-client.ts';
import { connectOld } from '../support/old-client.ts';
import { serverEntry, type ViewFile, writeViewFile } from '../support/view-file.ts';
import { connectWebSocket } from '../support/websocket-client.ts';

const command = [process.execPath, `${root}test/fixtures/careless-server.mjs`];
const hiding = { allowTools: ['@readOnlyHint'], denyPrompts: ['wipe'] };
const hidingInView = { allowTools: ['@readOnlyHint'], denyPrompts: ['*wipe'] };

const attempts = attemptsAt('a__');

/** Everything that the server behind the view has run for a session. */
async function ranFor(session: Session): Promise<unknown> {
  const { content } = await session.callTool('a__ran');
  return JSON.parse(content[0].text);
}

describe.each([
  ['a server', { a: serverEntry(command, hiding), b: serverEntry(command) }, { servers: ['*'] }],
  ['a view', { a: serverEntry(command), b: serverEntry(command) }, { servers: ['*'], ...hidingInView }],
] as const)('a filter of %s, through the view', (_, servers, view) => {
  let file: ViewFile;
  let gateway: LocalGateway;
  let url: string;
  beforeAll(async () => {
    file = await writeViewFile(servers, { view });
    gateway = await startLocalGateway({ args: file.args });
    url = `${gateway.baseUrl}/view/mcp`;
  });
  afterAll(async () => {
    await gateway.stop();
    await file.remove();
  });

  test.each(Object.keys(attempts))('is not passed by %s', async (name) => {
    const session = await openAnswered(url, { version: revisionOf(name) });
    await attempts[name]?.(session);
    expect(await ranFor(session)).toEqual([]);
    await session.delete();
  });

  test('is not passed over WebSocket, over HTTP+SSE, or by a 2026-07-28 request', async () => {
    const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'a__delete_file', arguments: {} } };
    const refused = { code: -32602, data: { reason: 'unknown_tool' } };
    expect((await callModern(url, 'a__delete_file', {})).json.error).toMatchObject(refused);
    const socket = await connectWebSocket(`${url.replace('http', 'ws').replace(/mcp$/, 'ws')}`);
    const clientInfo = { name: 'raw', version: '1' };
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo };
    socket.send({ jsonrpc: '2.0', id: 0, method: 'initialize', params });
    await socket.next(({ id }) => id === 0);
    socket.send({ jsonrpc: '2.0', method: 'notifications/initialized' });
    socket.send(body);
    expect((await socket.next(({ id }) => id === 1)).error).toMatchObject(refused);
    const old = await connectOld(gateway.baseUrl, { prefix: '/view' });
    expect((await old.request('tools/call', body.params)).error).toMatchObject(refused);
    old.drop();
  });
});

test('without a filter, the attempts would reach the server through the view', async () => {
  const { args } = await writeViewFile({ a: serverEntry(command), b: serverEntry(command) }, { view: ['*'] });
  const { baseUrl } = await startLocalGateway({ args });
  const reached = await Promise.all(
    ['a call before any list', 'escapes', 'a task', 'a hidden prompt', 'a batch'].map(async (name) => {
      const session = await openAnswered(`${baseUrl}/view/mcp`, { version: revisionOf(name) });
      await attempts[name]?.(session);
      return ranFor(session);
    }),
  );
  for (const ran of reached) expect(ran).toHaveLength(1);
});
