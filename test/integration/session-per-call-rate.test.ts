import { expect, test } from 'vitest';
import { everythingReference, startGateway } from '../support/gateway.ts';
import { initialize } from '../support/http-client.ts';

/** A client that opens a session for each call, as agent frameworks do. */
async function callInSessions(url: string, sessions: number): Promise<void> {
  for (let session = 0; session < sessions; session += 1) {
    const opened = await initialize(url, { clientInfo: { name: 'mcp', version: '0.1.0' } });
    const answer = await opened.request('tools/call', { name: 'echo', arguments: { message: 'x' } });
    expect(JSON.stringify(answer.messages.at(-1))).toContain('Echo: x');
    await opened.delete();
  }
}

/** The rate of sessions, and whether one process served all of them. */
async function measure(share: string, sessions: number) {
  const command = everythingReference;
  const gateway = await startGateway({ env: { GANGWAY_SHARE: undefined }, args: ['--share', share], command });
  await callInSessions(gateway.url, 2);
  const before = await gateway.descendants();
  const startedAt = performance.now();
  await callInSessions(gateway.url, sessions);
  const perSecond = (sessions * 1_000) / (performance.now() - startedAt);
  const after = await gateway.descendants();
  const isOneProcess = after.length === 1 && before.some(({ pid }) => pid === after[0]?.pid);
  await gateway.stop();
  return { perSecond, isOneProcess };
}

/** Other work on the machine slows one of the two measurements more than the other. The best of these counts. */
const attempts = 3;

test('a client with a session for each call keeps its process from the third one on, at 20 times the rate', async () => {
  const ratios: number[] = [];
  while (ratios.length < attempts && Math.max(0, ...ratios) <= 20) {
    const own = await measure('session', 5);
    const auto = await measure('auto', 200);
    expect([own.isOneProcess, auto.isOneProcess]).toEqual([false, true]);
    const rates = `${auto.perSecond.toFixed(1)} a second by default, ${own.perSecond.toFixed(1)} with --share session`;
    process.stdout.write(`sessions for one call: ${rates}\n`);
    ratios.push(auto.perSecond / own.perSecond);
  }
  expect(Math.max(...ratios), ratios.join()).toBeGreaterThan(20);
}, 300_000);
