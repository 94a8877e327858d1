import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { FloodFigures } from '../requirements/gates.ts';
import { type Gateway, root, startGateway } from '../support/gateway.ts';
import { initialize, post, type Session } from '../support/http-client.ts';
import { serverEntry, writeViewFile } from '../support/view-file.ts';
import { type ClientTransport, clientFloods, floodingClients, sendText } from './flooding-clients.ts';
import { limitMemory, type MemoryLimit, takePeakRssMiB } from './memory-limit.ts';

/**
 * What hostile servers and clients do to everybody else (gate 1 of docs/hardening.md). Each flood runs against a server
 * alone, in a view and behind a filter, over each transport. Measured is the processor time of the gateway's main thread
 * during one `/healthz`: other programs cannot raise it. The gateway has the memory of a small container.
 * `node test/run.mjs floods`; `FLOODS_WRITE=1` writes the figures.
 */
const maxHealthMs = 50;
const maxMemoryMiB = 512;

/** The time for which a flood is watched at least, and at most. */
const watchMs = Number(process.env['FLOODS_WATCH_MS'] ?? 1_000);
const maxWatchMs = 15_000;

const program = fileURLToPath(new URL('hostile-server.mjs', import.meta.url));
const proberProgram = fileURLToPath(new URL('prober.mjs', import.meta.url));
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

const serverTransports = ['stdio', 'sse', 'http', 'ws'] as const;
const places = ['alone', 'view', 'filter'] as const;

/** Who floods whom: the kind of the flood, and the transport of the client. */
type Row = readonly [kind: string, client: ClientTransport];

const serverRows = serverFloods.map((kind): Row => [kind, 'http']);
const clientRows = (client: ClientTransport): Row[] => Object.keys(clientFloods).map((kind) => [kind, client]);
/** Clients of every transport flood a STDIO server. Those of Streamable HTTP flood servers of every transport. */
const rowsOf = (transport: (typeof serverTransports)[number]): Row[] => [
  ...serverRows,
  ...clientRows('http'),
  ...(transport === 'stdio' ? (['sse', 'ws', 'modern'] as const).flatMap(clientRows) : []),
];

const figures: { -readonly [Key in keyof FloodFigures]: Record<string, Record<string, number>> } = {
  healthMs: {},
  peakMiB: {},
};

/** The flags of the image that every Node.js has: see the Dockerfile. */
const containerFlags = ['--max-semi-space-size=32', '--expose-gc'];

const call = (id: number, name: string, kind: string): string =>
  JSON.stringify({
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: { name, arguments: { kind }, _meta: { progressToken: 7 } },
  });

/** Runs the flood that the call asks for. */
async function floodFromServer(baseUrl: string, place: string, kind: string) {
  const url = `${baseUrl}/${place}/mcp`;
  const agent = new Agent({ keepAlive: true });
  const session = await initialize(url);
  const headers = { 'Mcp-Session-Id': session.id };
  await sendText(url, '{"jsonrpc":"2.0","id":90,"method":"tools/list"}', headers, agent);
  return {
    async flood(): Promise<void> {
      await sendText(url, call(1, 'flood', kind), headers, agent);
      await sendText(url, '{"jsonrpc":"2.0","id":2,"method":"tools/list"}', headers, agent);
      if (kind !== 'many templates') return;
      await sendText(url, '{"jsonrpc":"2.0","id":3,"method":"resources/templates/list"}', headers, agent);
      const read = `{"jsonrpc":"2.0","id":4,"method":"resources/read","params":{"uri":"x:${'b'.repeat(4_000)}"}}`;
      await sendText(url, read, headers, agent);
    },
    async close(): Promise<void> {
      await sendText(url, '{"jsonrpc":"2.0","id":5,"method":"ping"}', headers, agent);
      await post(url, call(6, 'flood', 'none'), headers).catch(() => undefined);
      await session.delete();
      agent.destroy();
    },
  };
}

async function floodFromClient(baseUrl: string, place: string, kind: string, transport: ClientTransport) {
  const { atOnce, rounds, request, headers } = clientFloods[kind] as (typeof clientFloods)[string];
  const client = await floodingClients[transport](baseUrl, place);
  let lastId = 100;
  return {
    async flood(): Promise<void> {
      for (let round = 0; round < rounds; round += 1)
        await Promise.all(Array.from({ length: atOnce }, () => client.send(++lastId, request, headers)));
    },
    close: () => client.close(),
  };
}

describe.each(serverTransports)('[P8] floods of and at a server over %s', (transport) => {
  let server: ChildProcessByStdio<null, Readable, null> | undefined;
  let prober: ChildProcessByStdio<Writable, Readable, null>;
  let proberLines: AsyncIterator<string>;
  let memory: MemoryLimit | undefined;
  let gateway: Gateway;
  let honest: Session;
  let removeFile: () => Promise<void>;

  beforeAll(async () => {
    memory = limitMemory(maxMemoryMiB);
    const ownEntry = serverEntry([...(memory?.outside ?? []), process.execPath, program, 'stdio']);
    let entry = ownEntry;
    if (transport !== 'stdio') {
      server = spawn(process.execPath, [program, transport], { stdio: ['ignore', 'pipe', 'inherit'] });
      const [port] = (await once(createInterface({ input: server.stdout }), 'line')) as [string];
      entry = { url: transport === 'ws' ? `ws://127.0.0.1:${port}/` : `http://127.0.0.1:${port}/mcp` };
    }
    const tools = {
      t1: { description: 'changed', arguments: { a: 1, b: 2, c: 3 } },
      flood: { arguments: { fixed: 1 } },
    };
    const servers = {
      honest: ownEntry,
      alone: entry,
      viewed: entry,
      filter: { ...entry, allowTools: ['*'], denyTools: ['x*'], tools },
    };
    const file = await writeViewFile(servers, { view: { servers: ['viewed', 'honest'], unprefixed: 'viewed' } });
    removeFile = file.remove;
    gateway = await startGateway({
      program: [...(memory?.inside ?? []), process.execPath, ...containerFlags, `${root}dist/main.js`],
      args: file.args,
      env: { GANGWAY_SHARE: undefined },
      isStoppedWithTest: false,
    });
    honest = await initialize(`${gateway.baseUrl}/honest/mcp`);
    const proberWords = [proberProgram, `${gateway.port}`, `${gateway.pid}`];
    prober = spawn(process.execPath, proberWords, { stdio: ['pipe', 'pipe', 'inherit'] });
    proberLines = createInterface({ input: prober.stdout })[Symbol.asyncIterator]();
  });
  afterAll(async () => {
    prober?.kill();
    const peakMiB = memory?.peakMiB().toFixed();
    process.stdout.write(`The group of the gateway used ${peakMiB ?? '?'} of ${maxMemoryMiB} MiB at most\n`);
    await gateway?.stop();
    server?.kill();
    await memory?.remove();
    await removeFile?.();
    if (process.env['FLOODS_WRITE'] === '1') writeFigures();
  });

  /** The highest processor time of a `/healthz` since the last call. */
  async function takeHealthMs(): Promise<{ maxMs: number; probes: number }> {
    prober.stdin.write('\n');
    const { value } = await proberLines.next();
    return JSON.parse(value as string);
  }

  /** Watches the gateway until a flood is over. */
  async function watch(flood: Promise<unknown>): Promise<{ ms: number; miB: number }> {
    await takeHealthMs();
    takePeakRssMiB(gateway.pid);
    const ends = Promise.race([flood, delay(maxWatchMs, undefined, { ref: false })]);
    let isOver = false;
    void ends.finally(() => (isOver = true));
    const least = delay(watchMs);
    for (let n = 0; !isOver; n += 1) {
      await honest.callTool('flood', { n }); // throws unless it is answered
      await Promise.race([ends, delay(50)]);
    }
    await ends;
    await least;
    const { maxMs, probes } = await takeHealthMs();
    expect(probes).toBeGreaterThan(0);
    return { ms: maxMs, miB: takePeakRssMiB(gateway.pid) };
  }

  describe.each(places)('%s', (place) => {
    it.each(rowsOf(transport))('%s, a client over %s', async (kind, client) => {
      const floodFrom = kind in clientFloods ? floodFromClient : floodFromServer;
      const { flood, close } = await floodFrom(gateway.baseUrl, place, kind, client);
      let { ms, miB } = await watch(flood());
      // The first runs may have compiled code, or have met a full collection of garbage.
      for (let run = 1; run < 3 && ms > maxHealthMs; run += 1) {
        const again = await watch(flood());
        ms = Math.min(ms, again.ms);
        miB = Math.max(miB, again.miB);
      }
      await close();
      const where = client === 'http' ? `${place} ${transport}` : `${place} ${transport} from ${client}`;
      const figure = `${ms.toFixed().padStart(5)} ms ${miB.toFixed().padStart(5)} MiB`;
      process.stdout.write(`${figure}  ${kind}, ${where}\n`);
      figures.healthMs[kind] = { ...figures.healthMs[kind], [where]: Math.round(ms) };
      figures.peakMiB[kind] = { ...figures.peakMiB[kind], [where]: Math.round(miB) };
      expect(ms).toBeLessThan(maxHealthMs);
      expect(miB).toBeLessThan(maxMemoryMiB);
    });
  });
});

/** Writes the figures into the file of the page. Those of rows that did not run stay. */
function writeFigures(): void {
  const before = JSON.parse(readFileSync(figuresFile, 'utf8')) as FloodFigures;
  const kinds = [...serverFloods, ...Object.keys(clientFloods)];
  const merged = (key: keyof FloodFigures) =>
    Object.fromEntries(kinds.map((kind) => [kind, { ...before[key]?.[kind], ...figures[key][kind] }]));
  const text = JSON.stringify({ healthMs: merged('healthMs'), peakMiB: merged('peakMiB') }, undefined, 2);
  writeFileSync(figuresFile, `${text}\n`);
}
