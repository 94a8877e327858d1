import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { Agent, request as httpRequest } from 'node:http';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { initialize, post, type Session } from '../support/http-client.ts';
import { serverEntry, writeViewFile } from '../support/view-file.ts';

/**
 * What hostile servers and clients do to everybody else (gate 1 of docs/hardening.md). Each flood runs against a server
 * alone, in a view and behind a filter, over each transport. Measured is the processor time of the gateway's main thread
 * during one `/healthz`: other programs cannot raise it. `npm run test:floods`; `FLOODS_WRITE=1` writes the figures.
 */
const maxHealthMs = 50;

/** The time for which a flood is watched at least, and at most. */
const watchMs = Number(process.env['FLOODS_WATCH_MS'] ?? 1_000);
const maxWatchMs = 15_000;

const program = fileURLToPath(new URL('hostile-server.mjs', import.meta.url));
const figuresFile = new URL('../requirements/flood-figures.json', import.meta.url);

const serverFloods = [
  'lines that are no messages',
  'broken JSON',
  'small requests',
  'small notifications',
  'answers to nobody',
  'progress',
  'batches',
  'values without end',
  'escapes without end',
  'objects in objects',
  'one text of 54 MB',
  'texts just below the limit',
  'millions of tools',
  'many tools',
  'as many tools as are read',
  'large schemas with headers',
  'required arguments',
  'many templates',
];

/** What clients send at once, ten of them. */
const clientFloods: Readonly<Record<string, (n: number) => string>> = {
  'clients: long keys that are not ASCII': (n) =>
    `{"jsonrpc":"2.0","id":${n},"method":"ping","params":{${Array.from({ length: 1_000 }, (_, k) => `"${k}${'é'.repeat(1_990)}":1`).join()}}}`,
  'clients: bodies just below the limit': (n) =>
    `{"jsonrpc":"2.0","id":${n},"method":"ping","params":{"a":[${'0,'.repeat(255_000)}0]}}`,
  'clients: large calls': (n) =>
    `{"jsonrpc":"2.0","id":${n},"method":"tools/call","params":{"name":"flood","arguments":{${Array.from({ length: 8_000 }, (_, k) => `"${k}${'é'.repeat(200)}":1`).join()}}}}`,
};
const clientFloodKinds = [...Object.keys(clientFloods), 'clients: many headers', 'clients: many small requests'];

const transports = ['stdio', 'sse', 'http', 'ws'] as const;
const places = ['alone', 'view', 'filter'] as const;

/** The highest processor time of each flood: by its kind, place and transport. */
const figures: Record<string, Record<string, number>> = {};

/** The processor time of the main thread of a process, in milliseconds. */
const cpuMsOfMain = (pid: number): number =>
  Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6;

/** Sends a request, and drops the answer unread but for its status. */
async function send(url: string, body: string, headers: Record<string, string>, agent: Agent): Promise<number> {
  return new Promise((resolve) => {
    const request = httpRequest(url, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', ...headers },
      agent,
    });
    request.on('response', (response) => {
      response.resume();
      response.once('close', () => resolve(response.statusCode ?? 0));
    });
    request.on('error', () => resolve(0));
    request.end(body);
  });
}

const call = (id: number, name: string, kind: string): string =>
  JSON.stringify({
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: { name, arguments: { kind }, _meta: { progressToken: 7 } },
  });

describe.each(transports)('[P8] floods of a server over %s', (transport) => {
  let server: ChildProcess | undefined;
  let gateway: Gateway;
  let honest: Session;
  let removeFile: () => Promise<void>;

  beforeAll(async () => {
    let entry = serverEntry([process.execPath, program, 'stdio']);
    if (transport !== 'stdio') {
      server = spawn(process.execPath, [program, transport], { stdio: ['ignore', 'pipe', 'inherit'] });
      const [port] = (await once(createInterface({ input: server.stdout as never }), 'line')) as [string];
      entry = { url: transport === 'ws' ? `ws://127.0.0.1:${port}/` : `http://127.0.0.1:${port}/mcp` };
    }
    const honestEntry = serverEntry([process.execPath, program, 'stdio']);
    const tools = {
      t1: { description: 'changed', arguments: { a: 1, b: 2, c: 3 } },
      flood: { arguments: { fixed: 1 } },
    };
    const servers = {
      honest: honestEntry,
      alone: entry,
      viewed: entry,
      filter: { ...(entry as object), allowTools: ['*'], denyTools: ['x*'], tools },
    };
    const file = await writeViewFile(servers, { view: { servers: ['viewed', 'honest'], unprefixed: 'viewed' } });
    removeFile = file.remove;
    gateway = await startGateway({
      args: file.args,
      env: { NODE_OPTIONS: '--max-old-space-size=400' },
      isStoppedWithTest: false,
    });
    honest = await initialize(`${gateway.baseUrl}/honest/mcp`);
  });
  afterAll(async () => {
    await gateway?.stop();
    server?.kill();
    await removeFile?.();
    if (process.env['FLOODS_WRITE'] === '1') writeFileSync(figuresFile, `${JSON.stringify(figures, undefined, 2)}\n`);
  });

  /** Watches the gateway until a flood is over. Returns the highest processor time during one `/healthz`. */
  async function watch(flood: Promise<unknown>): Promise<number> {
    const started = performance.now();
    let isOver = false;
    void flood.finally(() => (isOver = true));
    let max = 0;
    for (let id = 0; ; id += 1) {
      const passed = performance.now() - started;
      if (passed > maxWatchMs || (isOver && passed > watchMs)) return max;
      const before = cpuMsOfMain(gateway.pid);
      const response = await fetch(`${gateway.baseUrl}/healthz`, { headers: { Connection: 'close' } });
      await response.arrayBuffer();
      max = Math.max(max, cpuMsOfMain(gateway.pid) - before);
      expect(response.status).toBe(200);
      if (id % 5 === 0) await honest.callTool('flood', { n: id }); // throws unless it is answered
    }
  }

  async function measure(kind: string, place: string, flood: () => Promise<unknown>): Promise<void> {
    let ms = await watch(flood());
    // The first runs may have compiled code, or have met a full collection of garbage.
    for (let run = 1; run < 3 && ms > maxHealthMs; run += 1) ms = Math.min(ms, await watch(flood()));
    figures[kind] = { ...figures[kind], [`${place} ${transport}`]: Math.round(ms) };
    process.stdout.write(`${ms.toFixed(0).padStart(5)} ms  ${kind}, ${place}, ${transport}\n`);
    expect(ms).toBeLessThan(maxHealthMs);
  }

  describe.each(places)('%s', (place) => {
    it.each(serverFloods)('%s', async (kind) => {
      const url = `${gateway.baseUrl}/${place}/mcp`;
      const agent = new Agent({ keepAlive: true });
      const session = await initialize(url);
      const headers = { 'Mcp-Session-Id': session.id };
      await send(url, '{"jsonrpc":"2.0","id":90,"method":"tools/list"}', headers, agent);
      await measure(kind, place, async () => {
        await send(url, call(1, 'flood', kind), headers, agent);
        await send(url, '{"jsonrpc":"2.0","id":2,"method":"tools/list"}', headers, agent);
        if (kind !== 'many templates') return;
        await send(url, '{"jsonrpc":"2.0","id":3,"method":"resources/templates/list"}', headers, agent);
        const read = `{"jsonrpc":"2.0","id":4,"method":"resources/read","params":{"uri":"x:${'b'.repeat(4_000)}"}}`;
        await send(url, read, headers, agent);
      });
      await send(url, '{"jsonrpc":"2.0","id":5,"method":"ping"}', headers, agent);
      await post(url, call(6, 'flood', 'none'), headers).catch(() => undefined);
      agent.destroy();
    });

    it.runIf(transport === 'stdio').each(clientFloodKinds)('%s', async (kind) => {
      const url = `${gateway.baseUrl}/${place}/mcp`;
      const agent = new Agent({ keepAlive: true });
      const headers = { 'Mcp-Session-Id': (await initialize(url)).id };
      const ping = (n: number): string => `{"jsonrpc":"2.0","id":${n},"method":"ping"}`;
      const text = clientFloods[kind] ?? ping;
      const lines = Object.fromEntries(Array.from({ length: 90 }, (_, n) => [`X-${n}`, 'x'.repeat(100)]));
      const isSmall = text === ping;
      await measure(kind, place, async () => {
        for (let round = 0; round < (isSmall ? 20 : 1); round += 1) {
          const each = Array.from({ length: isSmall ? 50 : 10 }, (_, n) =>
            send(url, text(round * 100 + n), kind.endsWith('headers') ? { ...headers, ...lines } : headers, agent),
          );
          await Promise.all(each);
        }
      });
      agent.destroy();
    });
  });
});
