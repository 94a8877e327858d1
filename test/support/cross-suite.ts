import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ReadyServer, ServerKind } from '../integration/server-kinds.ts';
import { type ClientKind, newestClients } from './client-kinds.ts';
import { type ProcessInfo, stillAlive } from './processes.ts';
import type { SdkClient } from './sdk-clients.ts';
import { featuresAt } from './sdk-features.ts';
import { waitFor } from './wait-for.ts';

/** The endpoint of the clients: one gateway, or several behind a balancer. */
export interface Endpoint {
  readonly url: string;
  /** The living processes that the endpoint started. */
  descendants(): Promise<readonly ProcessInfo[]>;
  stop(): Promise<unknown>;
}

export interface Cross {
  readonly servers: readonly ServerKind[];
  readonly clients: readonly ClientKind[];
  /** Starts an endpoint in front of a server. All clients use it. */
  start(server: Pick<ReadyServer, 'args' | 'command'>): Promise<Endpoint>;
}

/**
 * Options of the gateways: requests that a test leaves unanswered delay the shutdown only briefly. `server-everything`
 * does not end when its stdin is closed.
 */
export const hastyArgs = ['--timeouts.grace', '500ms'] as const;

/** Tests each kind of client with each kind of server: every feature that both have. */
export function testCross({ servers, clients, start }: Cross): void {
  describe.each(servers)('$name', ({ transport, features, isModern = false, ready }) => {
    let server: ReadyServer | undefined;
    let endpoint: Endpoint;
    beforeAll(async () => {
      server = await ready();
      endpoint = await start(server);
    });
    afterAll(async () => {
      await endpoint?.stop();
      await server?.stop();
    });

    describe.each(clients)('$name', ({ speech, connect }) => {
      let client: SdkClient;
      beforeAll(async () => {
        client = await connect(endpoint.url);
      });
      afterAll(() => client?.close());

      test('[R7.06] [R9.01] negotiates the revision that it asks for', () => {
        expect(client.protocolVersion).toBe(speech.revision);
      });

      test.each(featuresAt(features, speech.revision))('%s', (_feature, run) => run(client));
    });

    if (isModern) return; // one process for all
    test.each(newestClients)(
      '[R7.21] $name: DELETE ends the session, its process and no other',
      async ({ connect }) => {
        const [client, other] = [await connect(endpoint.url), await connect(endpoint.url)];
        const running = await endpoint.descendants();
        const processes = transport === 'stdio' ? 1 : 0;
        expect(running.length > 0).toBe(processes > 0);
        await other.terminateSession();
        await other.close();
        const left = await waitFor(
          async () => {
            const alive = await stillAlive(running);
            return alive.length <= running.length - processes && alive;
          },
          { what: 'the process to end' },
        );
        expect(left).toHaveLength(running.length - processes);
        await client.ping();
        await client.close();
      },
    );
  });
}
