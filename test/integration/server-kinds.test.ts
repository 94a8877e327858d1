import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { testFidelity } from '../support/fidelity-suite.ts';
import { root } from '../support/gateway.ts';
import { initialize, type Session } from '../support/http-client.ts';
import { type LocalGateway, startLocalGateway } from '../support/local-gateway.ts';
import { connectV1, connectV2 } from '../support/sdk-clients.ts';
import { fixtureKinds, type ReadyServer } from './server-kinds.ts';

/** What every kind of server must keep, besides the features: text, size, order, and apart what is of two clients. */
describe.each(fixtureKinds)('$name', ({ transport, ready }) => {
  let server: ReadyServer;
  let gateway: LocalGateway;
  beforeAll(async () => {
    server = await ready();
    gateway = await startLocalGateway({ args: server.args, command: server.command });
  });
  afterAll(async () => {
    await gateway?.stop();
    await server?.stop();
  });

  describe('P1: a message arrives as the same JSON text its sender wrote', () => {
    let session: Session;
    beforeAll(async () => {
      session = await initialize(gateway.url);
    });
    testFidelity(() => session);
  });

  test('large messages pass both ways', async () => {
    const client = await connectV1(gateway.url);
    for (const length of [1_000, 100_000, 2_000_000]) {
      const text = 'ä'.repeat(length / 2);
      expect(await client.callTool('echo', { text })).toBe(text);
    }
    await client.close();
  });

  test('[R8.05] two clients that speak at once are never mixed', async () => {
    const clients = await Promise.all([connectV1(gateway.url), connectV2(gateway.url)]);
    await Promise.all(
      clients.map(async (client, who) => {
        for (let i = 0; i < 30; i++) {
          const marker = `client ${who}, call ${i}`;
          const seen: (string | undefined)[] = [];
          const onProgress = ({ message }: { message?: string | undefined }) => seen.push(message);
          expect(await client.callTool('progress', { count: 3, gapMs: 0, marker }, { onProgress })).toBe(marker);
          expect(seen).toEqual([marker, marker, marker]);
        }
      }),
    );
    await Promise.all(clients.map((client) => client.close()));
  });

  test.each(['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'])(
    '[R8.06] the version of the answer to initialize is that of the session: %s',
    async (version) => {
      const session = await initialize(gateway.url, { version });
      const { messages } = await session.request('ping');
      expect(messages).toEqual([{ jsonrpc: '2.0', id: 1, result: {} }]);
      expect(session.version).toBe(version);
    },
  );

  test('check shows the transport', async () => {
    const [file = '', ...words] = process.env['GATEWAY_PROGRAM']?.split(' ') ?? [
      process.execPath,
      `${root}dist/main.js`,
    ];
    const behind = server.command.length > 0 ? ['--', ...server.command] : server.args;
    const { stdout } = await promisify(execFile)(file, [...words, 'check', ...behind]);
    expect(stdout).toMatch(
      new RegExp(`^OK {4}\\S+: everything-fixture 1.0.0, ${transport}, legacy era, revision 2025-11-25, \\d+ tools`),
    );
  });
});
