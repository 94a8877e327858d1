import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { everythingFixture, type Gateway, type GatewayOptions, startGateway } from '../../support/gateway.ts';
import { connectV1 } from '../../support/sdk-clients.ts';
import { waitFor } from '../../support/wait-for.ts';

/** Starts a gateway as a user does, without a word about the store. */
async function startAsUser(state: string, options: GatewayOptions = {}): Promise<Gateway> {
  const env = { GANGWAY_REPLAY_STORE: undefined, XDG_STATE_HOME: state };
  return startGateway({ command: everythingFixture, ...options, env });
}

async function freshState(): Promise<string> {
  const state = await mkdtemp(join(tmpdir(), 'gangway-state-'));
  onTestFinished(() => rm(state, { recursive: true, force: true }));
  return state;
}

test('[P7] a session outlives the gateway, without an option', async () => {
  const state = await freshState();
  const first = await startAsUser(state);
  expect(first.stdout()).toContain(`Sessions: kept in ${join(state, 'mcp-gangway')}.`);
  const client = await connectV1(first.url);
  expect((await client.listTools()).length).toBeGreaterThan(0);
  await first.stop('SIGKILL');
  await startAsUser(state, { port: first.port });
  // The client does not know of the new process, and sends its session id.
  expect((await client.listTools()).length).toBeGreaterThan(0);
  await client.close();
});

test('a second gateway of the same user keeps its sessions in memory, and says why', async () => {
  const state = await freshState();
  await startAsUser(state);
  const second = await startAsUser(state);
  expect(second.stdout()).toContain('Sessions: kept in memory, and lost on restart');
  const isReported = (): boolean =>
    second
      .logs()
      .some(({ msg, detail }) => /kept in memory/.test(`${msg}`) && /Another process uses/.test(`${detail}`));
  await waitFor(isReported, { what: 'the line that says why' });
  const client = await connectV1(second.url);
  expect((await client.listTools()).length).toBeGreaterThan(0);
  await client.close();
});

test('a directory that cannot be made keeps nobody from starting a gateway', async () => {
  const gateway = await startAsUser('/proc');
  expect(gateway.stdout()).toContain('Sessions: kept in memory, and lost on restart');
});

test('memory opts out, and nothing is written', async () => {
  const state = await freshState();
  const gateway = await startAsUser(state, { args: ['--replay.store', 'memory'] });
  expect(gateway.stdout()).toContain('Sessions: kept in memory, and lost on restart');
  expect(gateway.logs().filter(({ msg }) => /kept in memory/.test(`${msg}`))).toEqual([]);
});
