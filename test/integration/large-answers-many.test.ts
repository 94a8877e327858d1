import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { clientKinds, modernClients, newestClients, sseClients, webSocketClients } from '../support/client-kinds.ts';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { type Gateway, root, startGateway } from '../support/gateway.ts';
import { initialize } from '../support/http-client.ts';
import { largeServer } from '../support/large-server.ts';
import { callModern } from '../support/modern-client.ts';
import { connectOld } from '../support/old-client.ts';
import { withDeadline } from '../support/wait-for.ts';

const bytes = 16 * 1024 * 1024;

/** At once, and after the time that makes the answer an event of a stream. */
const times = [0, 300];

interface Started {
  readonly url: string;
  stop(): Promise<void>;
}

async function startServer(kind: string): Promise<Started> {
  const child = spawn(process.execPath, [`${root}test/fixtures/large-server.mjs`, kind], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  const [text] = await withDeadline(once(child.stdout, 'data'), {
    what: 'the address of the server',
    deadlineMs: 60_000,
  });
  return {
    url: String(text).trim(),
    async stop() {
      child.kill('SIGKILL');
      await exited;
    },
  };
}

/** A text in the result of a tool. */
const lengthOf = (result: { readonly content: readonly { readonly text: string }[] } | undefined) =>
  result?.content[0]?.text.length;

describe.each(['sse', 'http', 'http-stream', 'ws', 'tcp', 'modern'])(
  '[P3] [P8] an answer of 16 MiB of a server on %s',
  (kind) => {
    let server: Started;
    let gateway: Gateway;
    beforeAll(async () => {
      server = await startServer(kind);
      gateway = await startGateway({ args: [server.url] });
    }, 60_000);
    afterAll(async () => {
      await gateway?.stop();
      await server?.stop();
    });

    const few = [
      ...newestClients.slice(0, 1),
      ...sseClients.slice(0, 1),
      ...webSocketClients.slice(0, 1),
      ...modernClients,
    ];
    const all = process.env['LARGE'] === 'all' ? [...clientKinds, ...modernClients] : few;
    test.each(all)(
      'reaches a client of $name, at once and late',
      async ({ connect }) => {
        const client = await connect(gateway.url);
        for (const ms of times) expect((await client.callTool('large', { ms, bytes })).length).toBe(bytes);
        await client.close();
      },
      120_000,
    );
  },
);

describe.each(['local', 'direct'] as const)('[P3] [P8] an answer of 16 MiB between two instances, link: %s', (link) => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await startCluster({ instances: 2, link, command: [process.execPath, '-e', largeServer] });
  }, 60_000);
  afterAll(() => cluster?.stop());

  const baseUrl = (instance: number) => (cluster.instances[instance] as Gateway).baseUrl;

  test.each(times)(
    'reaches a client of Streamable HTTP at the other instance, after %i ms',
    async (ms) => {
      const session = await initialize(`${baseUrl(0)}/mcp`);
      for (const at of [0, 1])
        expect(lengthOf(await session.at(`${baseUrl(at)}/mcp`).callTool('large', { ms, bytes }))).toBe(bytes);
      await session.delete();
    },
    120_000,
  );

  test.each(times)(
    'reaches a client of HTTP+SSE whose stream is at the other instance, after %i ms',
    async (ms) => {
      const client = await connectOld(baseUrl(1), { initializeAt: baseUrl(0) });
      const call = { method: 'tools/call', params: { name: 'large', arguments: { ms, bytes } } };
      for (const at of [0, 1]) {
        const { result } = await client.request(call.method, call.params, { baseUrl: baseUrl(at) });
        expect(lengthOf(result)).toBe(bytes);
      }
      client.drop();
    },
    120_000,
  );

  test.each(times)(
    'reaches a client of 2026-07-28 at each instance, after %i ms',
    async (ms) => {
      for (const at of [0, 1, 0]) {
        const { messages } = await callModern(`${baseUrl(at)}/mcp`, 'large', { ms, bytes });
        expect(lengthOf(messages.at(-1)?.result)).toBe(bytes);
      }
    },
    120_000,
  );
});
