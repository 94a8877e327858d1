import { expect, onTestFinished, test } from 'vitest';
import { startGateway } from '../support/gateway.ts';
import { initialize } from '../support/http-client.ts';
import { waitFor } from '../support/wait-for.ts';
import { restartUnderBusySessions } from './busy-restart.ts';
import { argumentsFor, startRemoteServer } from './sse-remote.ts';

/** How long the server is away; more than the crash-loop breaker gives a local one to start. */
const downMs = 5_000;

test('[R8.04] [F28] [P3] an SSE server away for long under 50 busy sessions: all go on, calls in flight are answered', async () => {
  const server = await startRemoteServer('sse', String(downMs));
  onTestFinished(() => server.stop());
  const gateway = await startGateway({ args: argumentsFor(server.url) });
  await restartUnderBusySessions(server, gateway);
});

test('[F28] [P3] the same of a WebSocket server that is started anew', async () => {
  const server = await startRemoteServer('ws');
  onTestFinished(() => server.stop());
  const gateway = await startGateway({ args: argumentsFor(server.url) });
  await restartUnderBusySessions(server, gateway);
});

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
