import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Gateway, modernFixture, startGateway } from '../support/gateway.ts';
import { modernRevision } from '../support/modern-client.ts';
import { connectModernSdk, type Mode, type ModernSdkClient } from '../support/modern-sdk-client.ts';
import { processFeatures, statelessFeatures } from '../support/modern-sdk-features.ts';
import { answers, connectV1, connectV2 } from '../support/sdk-clients.ts';
import {
  modernFixtureKinds,
  modernHttpKinds,
  modernSocketKinds,
  type ReadyServer,
  type ServerKind,
} from './server-kinds.ts';

const modernOnly: ServerKind = {
  ...(modernFixtureKinds[0] as ServerKind),
  ...{
    name: 'a modern server',
    ready: async () => ({ args: [], command: modernFixture, stop: async () => undefined }),
  },
};
const kinds = [modernOnly, ...modernFixtureKinds.slice(1), ...modernHttpKinds, ...modernSocketKinds];

const modes: readonly (readonly [string, Mode])[] = [
  ['auto', 'auto'],
  ['pinned', { pin: modernRevision }],
];

describe.each(kinds)('SDK v2 clients in front of $name whose era is found out', ({ ready }) => {
  let server: ReadyServer;
  let gateway: Gateway;
  beforeAll(async () => {
    server = await ready();
    gateway = await startGateway(server);
  });
  afterAll(async () => {
    await gateway?.stop();
    await server?.stop();
  });

  describe.each(modes)('%s', (_mode, mode) => {
    let connected: ModernSdkClient;
    beforeAll(async () => {
      connected = await connectModernSdk(gateway.url, mode);
    });
    afterAll(() => connected?.[Symbol.asyncDispose]());

    test('[R9.01b] [R6.05] speaks 2026-07-28', () => {
      expect(connected.client.getNegotiatedProtocolVersion()).toBe(modernRevision);
    });

    test.each([...statelessFeatures, ...processFeatures])('%s', (_feature, run) => run(connected));
  });
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
    expect(await gateway.descendants()).toHaveLength(2);
  });
});

describe('a client in auto mode in front of a server that is not modern', () => {
  test('[R9.01b] [R6.06] falls back to initialize', async () => {
    await using gateway = await startGateway({ command: [process.execPath, 'test/fixtures/everything-server.mjs'] });
    await using client = await connectModernSdk(gateway.url, 'auto');
    expect(client.client.getNegotiatedProtocolVersion()).toBe('2025-11-25');
    expect(await client.callTool('echo', { text: 'x' })).toBe('x');
    expect(await gateway.descendants()).toHaveLength(1);
  });
});
