import { describe, expect, test } from 'vitest';
import { everythingFixture, startGateway } from '../support/gateway.ts';
import { initialize } from '../support/http-client.ts';
import { stillAlive } from '../support/processes.ts';
import { withDeadline } from '../support/wait-for.ts';

const streams = 50;
const perSession = 10;

const progressCall = (id: number, marker: string) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name: 'progress', arguments: { count: 40, gapMs: 50, marker }, _meta: { progressToken: id } },
});

describe('[F27] [P9] SIGTERM with open streams', () => {
  test('50 calls that stream get all their events and their results; exit 0 in time, and no child', async () => {
    const drainMs = 15_000;
    const gateway = await startGateway({ args: ['--timeouts.drain', `${drainMs}ms`], command: everythingFixture });
    const sessions = await Promise.all(
      Array.from({ length: streams / perSession }, () => initialize(gateway.url, { version: '2025-11-25' })),
    );
    const listening = await Promise.all(sessions.map((session) => session.getStream()));
    const calls = await Promise.all(
      sessions.flatMap((session, s) =>
        Array.from({ length: perSession }, (_, n) => session.send(progressCall(n + 1, `${s}.${n}`))),
      ),
    );
    await Promise.all(calls.map((call) => call.nextMessage(({ method }) => method === 'notifications/progress')));
    const children = await gateway.descendants();
    expect(children.length).toBeGreaterThanOrEqual(sessions.length);

    const before = performance.now();
    process.kill(gateway.pid, 'SIGTERM');
    const answers = await Promise.all(calls.map((call) => call.answer()));
    for (const { messages } of answers) {
      expect(messages).toHaveLength(41);
      expect(messages.at(-1)).toMatchObject({ result: {} });
    }
    await Promise.all(listening.map((stream) => stream.events.ended));
    expect(await withDeadline(gateway.exited, { deadlineMs: drainMs, what: 'the exit' })).toEqual({
      code: 0,
      signal: null,
    });
    expect(performance.now() - before).toBeLessThan(drainMs);
    expect(await stillAlive(children)).toEqual([]);
  });
});

describe('[F29] a gateway that stands still', () => {
  test('for two seconds loses no event, no call and no session', async () => {
    const gateway = await startGateway({ args: ['--sse.heartbeat', '500ms'], command: everythingFixture });
    const session = await initialize(gateway.url, { version: '2025-11-25' });
    const call = await session.send(progressCall(1, 'm'));
    await call.nextMessage(({ method }) => method === 'notifications/progress');
    process.kill(gateway.pid, 'SIGSTOP');
    await new Promise((resolve) => setTimeout(resolve, 2_000)); // the standstill itself, not a wait for anything
    process.kill(gateway.pid, 'SIGCONT');
    const { messages } = await call.answer();
    expect(messages.map(({ params, result }) => params?.progress ?? typeof result)).toEqual([
      ...Array.from({ length: 40 }, (_, n) => n + 1),
      'object',
    ]);
    expect((await session.request('ping')).status).toBe(200);
  });
});
