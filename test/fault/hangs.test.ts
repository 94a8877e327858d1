import { describe, expect, test } from 'vitest';
import { initialize } from '../support/http-client.ts';
import { waitForDescendants, waitUntilGone } from '../support/processes.ts';
import { hanging, logged, requestOf, responseOf, startMoody, statusOf, toolCall } from './moody.ts';

const timedOut = { error: { code: -32000, data: { reason: 'request_timeout' } } };
const json = { Accept: 'application/json' };

describe('a child that hangs', () => {
  test('[F13] [P3] --timeouts.requestIdle: 504 as JSON, in band on a stream, and the child is told to stop', async () => {
    const moody = await startMoody({}, { args: ['--timeouts.requestIdle', '400ms', '--sse.streamAfter', '50ms'] });
    const session = await initialize(moody.gateway.url);
    const [asJson, asStream] = await Promise.all([
      session.send(toolCall('j', 'x', {}, hanging), json),
      session.send(toolCall('s', 'x', {}, hanging)),
    ]);
    const [first, second] = [await asJson.answer(), await asStream.answer()];
    expect([first.status, first.json]).toMatchObject([504, { id: 'j', ...timedOut }]);
    expect([second.status, second.headers['content-type'], second.messages]).toMatchObject([
      200,
      'text/event-stream',
      [{ id: 's', ...timedOut }],
    ]);
    const told = (await moody.toldBy(0, 6)).filter(({ method }) => method === 'notifications/cancelled');
    expect(told.map(({ params }) => params.requestId).sort()).toEqual(['j', 's']);
    expect(await statusOf(session)).toBe(200);
    expect(moody.pids()).toHaveLength(1);
  });

  test('[F13] [P3] --timeouts.requestIdle: each progress gives the call its time again', async () => {
    const idleMs = 600;
    const moody = await startMoody(
      {},
      { args: ['--timeouts.requestIdle', `${idleMs}ms`, '--sse.streamAfter', '10ms'] },
    );
    const session = await initialize(moody.gateway.url);
    const startedAt = performance.now();
    const call = await session.send(toolCall('slow', 'x', {}, { progressToken: 't', ...hanging }));
    const silent = await session.send(toolCall('silent', 'x', {}, { progressToken: 'u', ...hanging }));
    const silentEnd = responseOf(silent, 'silent').then(() => performance.now());
    const said: Promise<unknown>[] = [];
    let progress = 0;
    const timer = setInterval(() => {
      progress += 1;
      const text = { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 't', progress } };
      said.push(session.callTool('say', { texts: [`${JSON.stringify(text)}\n`] }));
      if (progress === 15) clearInterval(timer);
    }, 100);
    expect(await responseOf(call, 'slow')).toMatchObject(timedOut);
    const endedAt = performance.now();
    expect(progress).toBe(15);
    expect(endedAt - startedAt).toBeGreaterThan(15 * 100 + idleMs * 0.9);
    expect(await silentEnd, 'the end of the one that reports nothing').toBeLessThan(endedAt - idleMs);
    await Promise.all(said);
  });

  test('[F13] [P3] --timeouts.requestTotal ends a call that never stops to report progress', async () => {
    const args = ['--timeouts.requestTotal', '900ms', '--timeouts.requestIdle', '500ms', '--sse.streamAfter', '10ms'];
    const moody = await startMoody({}, { args });
    const session = await initialize(moody.gateway.url);
    const call = await session.send(toolCall('slow', 'x', {}, { progressToken: 't', ...hanging }));
    const text = { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 't', progress: 1 } };
    const said: Promise<unknown>[] = [];
    const say = () => said.push(session.callTool('say', { texts: [`${JSON.stringify(text)}\n`] }));
    const timer = setInterval(say, 100);
    const startedAt = performance.now();
    expect(await responseOf(call, 'slow')).toMatchObject(timedOut);
    clearInterval(timer);
    expect(performance.now() - startedAt).toBeGreaterThan(700);
    const { events } = await call.answer();
    expect(events.length).toBeGreaterThan(4);
    await Promise.all(said);
  });

  test('[F13] a late answer is dropped and counted, late progress too, and the id may be used again', async () => {
    const moody = await startMoody({}, { args: ['--timeouts.requestIdle', '300ms'] });
    const session = await initialize(moody.gateway.url);
    const get = await session.getStream();
    expect(
      await responseOf(session.send(toolCall('a', 'x', {}, { progressToken: 't', ...hanging })), 'a'),
    ).toMatchObject(timedOut);
    const late = [
      { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 't', progress: 1 } },
      { jsonrpc: '2.0', id: 'a', result: { late: true } },
    ];
    await session.callTool('say', { texts: late.map((text) => `${JSON.stringify(text)}\n`) });
    expect(await responseOf(session.send(toolCall('a', 'x')), 'a')).toMatchObject({ result: { run: 0 } });
    expect(get.events.items.filter(({ data }) => data !== '')).toEqual([]);
    await session.delete();
    expect(await logged(moody.gateway, 'session ended')).toMatchObject([{ unknown_response: 1, late: 1 }]);
  });

  test('[F13] other calls of the session and other sessions are unaffected', async () => {
    const moody = await startMoody({}, { args: ['--timeouts.requestIdle', '800ms', '--sse.streamAfter', '50ms'] });
    const [session, other] = [await initialize(moody.gateway.url), await initialize(moody.gateway.url)];
    const hung = session.send(toolCall('h', 'x', {}, hanging));
    for (let n = 0; n < 20; n++) {
      expect(await session.callTool('x')).toMatchObject({ run: 0 });
      expect(await other.callTool('x')).toMatchObject({ run: 1 });
    }
    expect(await responseOf(hung, 'h')).toMatchObject(timedOut);
    expect(moody.pids()).toHaveLength(2);
  });

  test('[F13] [P10] one that is stopped (SIGSTOP): its calls end, others go on, and it ends with its session', async () => {
    const moody = await startMoody({}, { args: ['--timeouts.requestIdle', '400ms'] });
    const [session, other] = [await initialize(moody.gateway.url), await initialize(moody.gateway.url)];
    const [stopped] = await moody.gateway.descendants();
    const pid = moody.pids()[0] as number;
    process.kill(pid, 'SIGSTOP');
    const call = session.send(requestOf('p', 'ping'), json);
    expect((await (await call).answer()).status).toBe(504);
    expect(await statusOf(other)).toBe(200);
    expect((await session.delete()).status).toBe(200);
    await waitUntilGone(stopped === undefined ? [] : [{ ...stopped, pid }]);
    await waitForDescendants(moody.gateway.pid, 1);
    expect(await statusOf(other)).toBe(200);
  });

  test('[F13] one that is stopped and continued answers what waited', async () => {
    const moody = await startMoody();
    const session = await initialize(moody.gateway.url);
    process.kill(moody.pids()[0] as number, 'SIGSTOP');
    const calls = Array.from({ length: 20 }, (_, n) => session.send(toolCall(n, 'x')));
    await Promise.all(calls); // all are streams by now: the child has been silent for so long
    process.kill(moody.pids()[0] as number, 'SIGCONT');
    for (const [n, call] of calls.entries()) expect(await responseOf(call, n)).toMatchObject({ result: { run: 0 } });
  });
});
