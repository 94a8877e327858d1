import { Agent } from 'node:http';
import { describe, expect, test } from 'vitest';
import { initialize, post } from '../support/http-client.ts';
import { waitForDescendants } from '../support/processes.ts';
import { waitFor } from '../support/wait-for.ts';
import { hanging, requestOf, startMoody, statusOf, toolCall } from './moody.ts';

const initializeBody = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 't', version: '1' } },
};

describe('a storm of new sessions', () => {
  test('[F26] [P8] over --max-sessions: 503 with Retry-After, no child too many, and the others are served', async () => {
    const { gateway } = await startMoody({}, { args: ['--max-sessions', '8'] });
    const honest = await initialize(gateway.url);
    const answers = await Promise.all(Array.from({ length: 200 }, () => post(gateway.url, initializeBody)));
    const opened = answers.filter(({ status }) => status === 200);
    const refused = answers.filter(({ status }) => status === 503);
    expect([opened.length, refused.length]).toEqual([7, 193]);
    for (const { headers, json } of refused) {
      expect([headers['retry-after'], headers['mcp-session-id']]).toEqual(['10', undefined]);
      expect(json).toMatchObject({ id: 0, error: { data: { reason: 'too_many_sessions' } } });
    }
    await waitForDescendants(gateway.pid, 8);
    expect(await statusOf(honest)).toBe(200);
    await honest.delete();
    await waitForDescendants(gateway.pid, 7);
    await waitFor(async () => (await post(gateway.url, initializeBody)).status === 200, { what: 'a place' });
  });

  test('[F26] [P10] of clients that go away at once leaves no child', async () => {
    // So slow that none is answered before its client goes, however busy the machine is.
    const { gateway } = await startMoody({ startMs: 3_000 }, { args: ['--max-sessions', '10'] });
    const agents = Array.from({ length: 60 }, () => new Agent());
    const answers = agents.map((agent) => post(gateway.url, initializeBody, {}, agent));
    await waitForDescendants(gateway.pid, (count) => count >= 5);
    for (const agent of agents) agent.destroy();
    await Promise.allSettled(answers);
    await waitForDescendants(gateway.pid, 0);
    expect(await statusOf(await initialize(gateway.url))).toBe(200);
  });
});

describe('a storm of calls', () => {
  test('[F26] [P8] over --limits.session.requests: 429 with Retry-After, nothing of it reaches the server; others go on', async () => {
    const moody = await startMoody({}, { args: ['--limits.session.requests', '10'] });
    const [session, other] = [await initialize(moody.gateway.url), await initialize(moody.gateway.url)];
    const calls = Array.from({ length: 10 }, (_, n) => session.send(toolCall(`c${n}`, 'x', {}, hanging)));
    await moody.toldBy(0, 12);
    for (let n = 0; n < 50; n++) {
      const { status, headers, json } = await (await session.send(requestOf(n, 'ping'))).answer();
      expect([status, headers['retry-after'], json]).toMatchObject([
        429,
        '1',
        { id: n, error: { data: { reason: 'too_many_calls' } } },
      ]);
    }
    expect(moody.told()[0]).toHaveLength(12);
    expect(await statusOf(other)).toBe(200);
    expect((await session.notify('notifications/x')).status).toBe(202);
    await session.delete();
    for (const call of calls) expect((await (await call).answer()).messages).toHaveLength(1);
  });

  test('[F26] [P8] a batch counts as many as it holds', async () => {
    const { gateway } = await startMoody({}, { args: ['--limits.session.requests', '3'] });
    const session = await initialize(gateway.url, { version: '2025-03-26' });
    const batch = (count: number) => Array.from({ length: count }, (_, n) => requestOf(n, 'x'));
    expect((await (await session.send(batch(4))).answer()).status).toBe(429);
    expect((await (await session.send(batch(3))).answer()).messages).toHaveLength(3);
  });
});
