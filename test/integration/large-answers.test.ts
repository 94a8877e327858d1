import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { clientKinds, modernClients } from '../support/client-kinds.ts';
import { initialize } from '../support/http-client.ts';
import { type LocalGateway, startLocalGateway } from '../support/local-gateway.ts';
import { waitFor } from '../support/wait-for.ts';

const size = 4 * 1024 * 1024;

/** A server whose answer has this many bytes of text, at once or after the time that makes it an event. */
const server = `
  let pending = '';
  const say = (id, result) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n');
  process.stdin.on('data', (chunk) => {
    pending += chunk;
    const lines = pending.split('\\n');
    pending = lines.pop();
    for (const { id, method, params } of lines.map((line) => JSON.parse(line))) {
      if (method === 'initialize')
        say(id, { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } });
      else if (method === 'tools/list') say(id, { tools: [{ name: 'large', inputSchema: { type: 'object' } }] });
      else if (method === 'tools/call')
        setTimeout(() => say(id, { content: [{ type: 'text', text: 'x'.repeat(${size}) }] }), params.arguments.ms);
      else if (id !== undefined) process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32601, message: 'no' } }) + '\\n');
    }
  }).on('end', () => process.exit());`;

describe('[P3] [P8] an answer that is larger than an event that is kept', () => {
  let gateway: LocalGateway;
  beforeAll(async () => {
    gateway = await startLocalGateway({
      args: ['--replay.maxSize', '2MiB'],
      command: [process.execPath, '-e', server],
    });
  });
  afterAll(() => gateway?.stop());

  test.each([...clientKinds, ...modernClients])('reaches a client of $name, at once and late', async ({ connect }) => {
    const client = await connect(gateway.url);
    for (const ms of [0, 300]) expect((await client.callTool('large', { ms })).length).toBe(size);
    await client.close();
  });

  test('is an error that names the option for a client that was not connected and resumes', async () => {
    const session = await initialize(gateway.url);
    const params = { name: 'large', arguments: { ms: 1_500 } };
    const call = await session.send({ jsonrpc: '2.0', id: 'large', method: 'tools/call', params });
    const { id } = await call.events.next(); // the priming event
    call.drop();
    const isLost = () => gateway.logs().some(({ msg }) => String(msg).includes('larger than an event'));
    await waitFor(isLost, { what: 'the warning' });
    const resumed = await session.getStream(id);
    const { error } = await resumed.nextMessage();
    expect(error).toMatchObject({ data: { reason: 'event_too_large' } });
    expect(error.message).toMatch(/--replay\.maxSize/);
  });
});
