import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { everythingFixture, modernFixture, startGateway } from '../support/gateway.ts';
import { type LocalGateway, startLocalGateway } from '../support/local-gateway.ts';
import { modernRevision } from '../support/modern-client.ts';
import { connectModernSdk, type ModernSdkClient } from '../support/modern-sdk-client.ts';
import { processFeatures, statelessFeatures } from '../support/modern-sdk-features.ts';
import { waitForDescendants } from '../support/processes.ts';
import { answers, connectV1, connectV2 } from '../support/sdk-clients.ts';
import {
  modernFixtureKinds,
  modernHttpKinds,
  modernOnly,
  modernSocketKinds,
  type ReadyServer,
} from './server-kinds.ts';

/** One of each transport: `cross.test.ts` has all of them. */
const kinds = [
  modernOnly,
  ...modernFixtureKinds.slice(1),
  ...modernHttpKinds.slice(0, 1),
  ...modernSocketKinds.slice(0, 1),
];

describe.each(kinds)('SDK v2 clients in front of $name', ({ ready }) => {
  let server: ReadyServer;
  let gateway: LocalGateway;
  let connected: ModernSdkClient;
  beforeAll(async () => {
    server = await ready();
    gateway = await startLocalGateway(server);
    connected = await connectModernSdk(gateway.url, 'auto');
  });
  afterAll(async () => {
    await connected?.[Symbol.asyncDispose]();
    await gateway?.stop();
    await server?.stop();
  });

  test('[R9.01b] [R6.05] speaks 2026-07-28', () => {
    expect(connected.client.getNegotiatedProtocolVersion()).toBe(modernRevision);
  });

  test.each([...statelessFeatures, ...processFeatures])('%s', (_feature, run) => run(connected));
});

describe('clients of the legacy era in front of a server of both', () => {
  test.each([
    ['SDK v1', connectV1],
    ['SDK v2', connectV2],
  ] as const)('[R1.06] [R9.10] %s, beside a modern one', async (_, connect) => {
    await using gateway = await startGateway({ command: [...modernFixture, '--dual'] });
    await using modern = await connectModernSdk(gateway.url, 'auto');
    await using legacy = await connect(gateway.url);
    expect(legacy.protocolVersion).toBe('2025-11-25');
    expect(await legacy.callTool('echo', { text: 'old' })).toBe('old');
    expect(await modern.callTool('echo', { text: 'new' })).toBe('new');
    expect(await legacy.callTool('test_input_required_result_list_roots')).toBe(JSON.stringify(answers.roots));
    await waitForDescendants(gateway.pid, 2);
  });
});

test('[R9.01b] a client in auto mode in front of a legacy server finds it modern', async () => {
  await using gateway = await startLocalGateway({ command: everythingFixture });
  await using client = await connectModernSdk(gateway.url, 'auto');
  expect(client.client.getNegotiatedProtocolVersion()).toBe(modernRevision);
  expect(await client.callTool('test_input_required_result_multiple_inputs')).toBe(
    `${answers.sample} ada with 1 roots`,
  );
  expect(await client.callTool('rounds', { count: 9 })).toBe('1,2,3,4,5,6,7,8,9');
});
