import { expect, onTestFinished, test } from 'vitest';
import { startGateway } from '../support/gateway.ts';
import { initialize, type Session } from '../support/http-client.ts';
import { waitFor } from '../support/wait-for.ts';
import { argumentsFor, startRemoteServer } from './sse-remote.ts';

const sessionCount = 10;

/** A call that the server never answers by itself; resolves when the server has it. */
async function hang(session: Session, key: string) {
  const exchange = await session.send({
    jsonrpc: '2.0',
    id: `hang-${key}`,
    method: 'tools/call',
    params: { name: 'wait_for_cancel', arguments: { key } },
  });
  await exchange.nextMessage(({ params }) => params?.data === `waiting ${key}`);
  return exchange;
}

/** How long the server is away; more than the crash-loop breaker gives a local one to start. */
const downMs = 9_000;

test.each(['sse', 'http'])(
  '[R8.04] [F28] [P3] a server on %s away for long under busy sessions: all go on, calls in flight are answered',
  async (kind) => {
    const server = await startRemoteServer(kind, String(downMs));
    onTestFinished(() => server.stop());
    const gateway = await startGateway({ args: argumentsFor(server.url) });
    const sessions = await Promise.all(Array.from({ length: sessionCount }, () => initialize(gateway.url)));
    const hung = await Promise.all(sessions.map((session, index) => hang(session, `k${index}`)));

    // Busy: each session asks on and on, with what may be run again and what may not.
    let isBusy = true;
    const outcomes: string[] = [];
    const busy = sessions.map(async (session) => {
      while (isBusy) {
        const list = await session.request('tools/list');
        expect(list.messages.find(({ result }) => result?.tools)).toBeDefined();
        const call = await session.request('tools/call', { name: 'echo', arguments: { text: 'x' } });
        const answer = call.messages.find(({ result, error }) => result ?? error);
        outcomes.push(answer?.error?.data.reason ?? answer?.result.content[0].text);
      }
    });
    await waitFor(() => outcomes.length > 5 * sessionCount, { what: 'all sessions to be busy' });
    server.restart();

    for (const exchange of hung) {
      const answer = await exchange.nextMessage(({ id }) => String(id).startsWith('hang-'));
      expect(answer.error.data.reason).toBe('server_exited');
    }
    const restored = () => gateway.logs().filter(({ msg }) => msg === 'server restored').length;
    await waitFor(() => restored() === sessionCount, { what: 'all sessions to be restored', deadlineMs: 20_000 });
    isBusy = false;
    await Promise.all(busy);

    const known = ['x', 'server_exited', 'server_unreachable', 'server_refused'];
    expect(outcomes.filter((outcome) => !known.includes(outcome))).toEqual([]);
    for (const [index, session] of sessions.entries()) {
      const { content } = await session.callTool('echo', { text: `still ${index}` });
      expect(content[0].text).toBe(`still ${index}`);
    }
    expect(gateway.logs().filter(({ msg }) => msg === 'session ended')).toEqual([]);
  },
);

test('[F28] [P3] a call that waits for a remote server that stays away is answered; the session lives on', async () => {
  const server = await startRemoteServer('tcp');
  const gateway = await startGateway({ args: argumentsFor(server.url) });
  const session = await initialize(gateway.url);
  await server.stop();
  const ends = () => gateway.logs().filter(({ msg }) => msg === 'server ended');
  await waitFor(() => ends().length === 2, { what: 'the loss and the first try that fails to be told' });
  const { messages } = await session.request('tools/call', { name: 'echo', arguments: { text: 'x' } });
  expect(messages.at(-1)?.error.data.reason).toBe('server_unreachable');
  expect(gateway.logs().filter(({ msg }) => msg === 'session ended')).toEqual([]);
  expect(ends()).toHaveLength(2);
});
