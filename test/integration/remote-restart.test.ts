import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { isFull } from '../fault/memory.ts';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { type Answer, initialize } from '../support/http-client.ts';
import { waitFor, withDeadline } from '../support/wait-for.ts';
import { busyRestartMs, restartUnderBusySessions } from './busy-restart.ts';
import { argumentsFor, startRemoteServer } from './remote-server.ts';

/**
 * Longer than all tries that a server of the gateway's own would have: here each is one more pause. So long that a list
 * waits less than 15 s, after which it would be answered, for what comes after the last one.
 */
const downMs = 5_000;

/** A server that is gone for good, and a call that waits for it while the other tests run: for a quarter of a minute. */
let left: { readonly gateway: Gateway; readonly call: Promise<Answer> };
const lostIn = (gateway: Gateway) => gateway.logs().filter(({ msg }) => msg === 'server ended');
beforeAll(async () => {
  const server = await startRemoteServer('tcp');
  const gateway = await startGateway({ args: argumentsFor(server.url) });
  const session = await initialize(gateway.url);
  await server.stop();
  await waitFor(() => lostIn(gateway).length === 2, { what: 'the loss and the first try that fails to be told' });
  left = { gateway, call: session.request('tools/call', { name: 'echo', arguments: { text: 'x' } }) };
});
afterAll(() => left?.gateway.stop());

test.each(['sse', 'http'])(
  '[R8.04] [F28] [P3] a server on %s away for long under 50 busy sessions: all go on, calls in flight are answered',
  async (kind) => {
    const server = await startRemoteServer(kind, `${downMs}`);
    onTestFinished(() => server.stop());
    const gateway = await startGateway({ args: argumentsFor(server.url) });
    await restartUnderBusySessions(server, gateway);
  },
  busyRestartMs,
);

/** `FAULT_FULL=1`: a server on WebSocket is lost like one on HTTP+SSE. */
test.runIf(isFull)('[F28] [P3] the same of a WebSocket server that is started anew', async () => {
  const server = await startRemoteServer('ws');
  onTestFinished(() => server.stop());
  const gateway = await startGateway({ args: argumentsFor(server.url) });
  await restartUnderBusySessions(server, gateway);
});

test('[F28] [P3] a call that waits for a remote server that stays away is answered; the session lives on', async () => {
  const { messages } = await withDeadline(left.call, { what: 'the answer', deadlineMs: 30_000 });
  expect(messages.at(-1)?.error.data.reason).toBe('server_unreachable');
  expect(left.gateway.logs().filter(({ msg }) => msg === 'session ended')).toEqual([]);
  expect(lostIn(left.gateway)).toHaveLength(2);
});
