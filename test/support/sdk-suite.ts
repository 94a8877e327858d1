import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { everythingFixture, everythingReference } from './gateway.ts';
import { type ProcessInfo, stillAlive } from './processes.ts';
import { connectV1, connectV2, type SdkClient } from './sdk-clients.ts';
import { featuresOfFixture, featuresOfReference } from './sdk-features.ts';
import { waitFor } from './wait-for.ts';

/** What the clients connect to: one gateway, or several behind a balancer. */
export interface Endpoint {
  readonly url: string;
  /** The living processes that it started. */
  descendants(): Promise<readonly ProcessInfo[]>;
  stop(): Promise<unknown>;
}

const clients = [
  ['@modelcontextprotocol/sdk (v1)', connectV1],
  ['@modelcontextprotocol/client (v2)', connectV2],
] as const;

const servers = [
  ['our own fixture', everythingFixture, featuresOfFixture],
  ['server-everything', everythingReference, featuresOfReference],
] as const;

/** The official clients, each feature, through an endpoint in front of each of two servers. */
export function testSdkClients(start: (command: readonly string[]) => Promise<Endpoint>): void {
  describe.each(servers)('in front of %s', (_server, command, features) => {
    let endpoint: Endpoint;
    beforeAll(async () => {
      endpoint = await start(command);
    });
    afterAll(async () => void (await endpoint?.stop()));

    describe.each(clients)('%s', (_client, connect) => {
      let client: SdkClient;
      beforeAll(async () => {
        client = await connect(endpoint.url);
      });
      afterAll(() => client.close());

      test('[R7.06] [R9.01] negotiates 2025-11-25', () => {
        expect(client.protocolVersion).toBe('2025-11-25');
      });

      test.each(features)('%s', (_feature, run) => run(client));

      test('[R7.21] DELETE ends the process', async () => {
        const other = await connect(endpoint.url);
        const running = await endpoint.descendants();
        await other.terminateSession();
        await other.close();
        const left = await waitFor(
          async () => {
            const alive = await stillAlive(running);
            return alive.length < running.length && alive;
          },
          { what: 'a process to end' },
        );
        // The other session's process lives on.
        expect(left).toHaveLength(running.length - 1);
        await client.ping();
      });
    });
  });
}
