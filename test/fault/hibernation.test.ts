import { describe, expect, test } from 'vitest';
import { initialize } from '../support/http-client.ts';
import { waitForDescendants } from '../support/processes.ts';
import { waitFor } from '../support/wait-for.ts';
import { logged, type Moody, requestOf, responseOf, startMoody, statusOf, toolCall } from './moody.ts';

const afterMs = 300;
const hibernating = ['--defaults.hibernateAfter', `${afterMs}ms`, '--timeouts.drain', '500ms'];

const sleeps = (moody: Moody) => logged(moody.gateway, 'session hibernated');
/** As many processes as sessions that are awake. */
const processes = (moody: Moody, count: number) => waitForDescendants(moody.gateway.pid, count);

describe('a session that hibernates', () => {
  test('[P10] has no process, keeps its GET stream, and answers with a new process that knows what the client had said', async () => {
    const capabilities = { tools: { listChanged: true } };
    const moody = await startMoody({ capabilities }, { args: hibernating });
    const session = await initialize(moody.gateway.url);
    await session.request('logging/setLevel', { level: 'error' });
    const get = await session.getStream();
    await sleeps(moody);
    await processes(moody, 0);
    // Calls that come together wake it once.
    const calls = [1, 2, 3].map((id) => session.send(toolCall(id, 'x')));
    for (const [index, call] of calls.entries())
      expect(await responseOf(call, index + 1)).toMatchObject({ result: { run: 1 } });
    expect((await moody.toldBy(1, 3)).slice(0, 3).map(({ method }) => method)).toEqual([
      'initialize',
      'notifications/initialized',
      'logging/setLevel',
    ]);
    await get.nextMessage(({ method }) => method === 'notifications/tools/list_changed');
    expect(moody.gateway.logs().filter(({ msg }) => msg === 'server ended' || msg === 'server restored')).toEqual([]);
    expect(await logged(moody.gateway, 'session woken')).toMatchObject([{ level: 'info', pid: expect.any(Number) }]);
    expect((await processes(moody, 1)).length).toBe(1);
  });

  test('[P8] wakes and sleeps again and again, and that is no crash loop', async () => {
    const moody = await startMoody({}, { args: hibernating });
    const session = await initialize(moody.gateway.url);
    for (let run = 1; run <= 8; run++) {
      await waitFor(() => moody.gateway.logs().filter(({ msg }) => msg === 'session hibernated').length === run, {
        what: `sleep ${run}`,
      });
      expect(await statusOf(session)).toBe(200);
    }
    expect(moody.gateway.logs().filter(({ msg }) => msg === 'session ended')).toEqual([]);
  });

  test('does not while a call runs, a question is open, or the client waits for changes of a resource', async () => {
    const moody = await startMoody({}, { args: hibernating });
    const [calling, asked, subscribed, idle] = await Promise.all(
      [{}, { elicitation: {} }, {}, {}].map((capabilities) => initialize(moody.gateway.url, { capabilities })),
    );
    await calling?.send(requestOf('long', 'tools/call', {}, { hangsUntil: 9 }));
    const exchange = await asked?.send(toolCall('q', 'ask', { as: 'q1' }));
    await exchange?.nextMessage(({ method }) => method === 'elicitation/create');
    await subscribed?.request('resources/subscribe', { uri: 'a:1' });
    await idle?.request('x');
    // Each may have slept before it had a reason not to. Now three have one, and only the fourth sleeps.
    const awake = () => {
      const count = (text: string) => moody.gateway.logs().filter(({ msg }) => msg === text).length;
      return 4 - count('session hibernated') + count('session woken');
    };
    await waitFor(() => awake() === 3, { what: 'the fourth session to sleep' });
    const pids = async () => (await processes(moody, 3)).map(({ pid }) => pid);
    const [before, slept] = [await pids(), (await sleeps(moody)).length];
    // Twice the time, in which each of them would have.
    const until = performance.now() + 2 * afterMs;
    await waitFor(() => performance.now() > until, { what: 'the time to pass' });
    expect(await pids()).toEqual(before);
    expect(await sleeps(moody)).toHaveLength(slept);
  });

  test('[P10] ends with its last process, also while that is still ending', async () => {
    const moody = await startMoody({}, { args: hibernating });
    const session = await initialize(moody.gateway.url);
    await sleeps(moody);
    expect((await session.delete()).status).toBe(200);
    expect(await statusOf(session)).toBe(404);
    await processes(moody, 0);
  });

  test('without the option nothing sleeps', async () => {
    const moody = await startMoody();
    const session = await initialize(moody.gateway.url);
    await session.request('x');
    const until = performance.now() + 2 * afterMs;
    await waitFor(() => performance.now() > until, { what: 'the time to pass' });
    expect((await processes(moody, 1)).length).toBe(1);
    expect(moody.gateway.logs().filter(({ msg }) => msg === 'session hibernated')).toEqual([]);
  });
});
