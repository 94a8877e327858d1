// node bench/names.mjs: ten servers by the name of their package, once run by npx, once installed by the gateway. Prints
// the memory of all their processes (PSS, Linux), and the time until each has answered tools/list. Both are measured with
// full caches, so that no download counts. The packages come from the registry of this machine.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { descendants } from './lib/proc.mjs';
import { median } from './report/measures.mjs';

const program = fileURLToPath(new URL('../dist/main.js', import.meta.url));
const rounds = 3;

const scope = '@modelcontextprotocol/server-';
/** The servers: their package, and arguments. */
const servers = Array.from({ length: 10 }, (_, index) => {
  const [name, ...args] = [['everything'], ['filesystem', tmpdir()], ['memory'], ['sequential-thinking']][index % 4];
  return { command: 'npx', args: ['-y', `${scope}${name}`, ...args] };
});

const folder = mkdtempSync(join(tmpdir(), 'gangway-names-'));
const file = join(folder, 'gangway.json');

const pssOf = (pid) => Number(/^Pss:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1]) / 1024;

/** Opens a session, and lists its tools. */
async function listTools(url) {
  const post = (message, headers = {}) =>
    fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
      body: JSON.stringify({ jsonrpc: '2.0', ...message }),
    });
  const clientInfo = { name: 'bench', version: '1' };
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo };
  const opened = await post({ id: 1, method: 'initialize', params });
  const session = { 'mcp-session-id': opened.headers.get('mcp-session-id') };
  await opened.text();
  await (await post({ method: 'notifications/initialized' }, session)).text();
  const listed = await (await post({ id: 2, method: 'tools/list', params: {} }, session)).text();
  if (!listed.includes('"tools"')) throw new Error(`${url}: ${listed}`);
}

/** @param packages the value of the option */
async function measure(packages) {
  const mcpServers = Object.fromEntries(servers.map((server, index) => [`s${index}`, server]));
  const options = { packages: { folder: join(folder, 'packages') }, defaults: { packages, share: 'session' } };
  writeFileSync(file, JSON.stringify({ ...options, mcpServers }));
  const args = [program, '--config', file, '--port', '0', '--admin-port', '0', '--replay.store', 'memory'];
  const startedAt = performance.now();
  // Elsewhere than in a project, whose packages npx would run.
  const gateway = spawn(process.execPath, args, { cwd: folder, stdio: ['ignore', 'pipe', 'ignore'] });
  let base = '';
  for await (const line of createInterface({ input: gateway.stdout })) {
    base = /(http:\/\/[^/\s]+)\/s0\/mcp/.exec(line)?.[1] ?? base;
    if (base !== '') break;
  }
  await Promise.all(servers.map((_, index) => listTools(`${base}/s${index}/mcp`)));
  const startMs = performance.now() - startedAt;
  // The first one is the starter.
  const [, ...processes] = descendants(gateway.pid);
  const pssMiB = processes.map(pssOf).reduce((sum, each) => sum + each, 0);
  gateway.kill('SIGTERM');
  await once(gateway, 'exit');
  return { startMs, pssMiB, processes: processes.length };
}

try {
  const results = { 'as-command': [], install: [] };
  for (let round = 0; round <= rounds; round++)
    for (const [packages, all] of Object.entries(results)) {
      const found = await measure(packages);
      // The first round fills the caches.
      if (round > 0) all.push(found);
    }
  process.stdout.write(`${'packages      processes   PSS (MiB)   ten tools/list (s)'}\n`);
  for (const [packages, all] of Object.entries(results)) {
    const of = (key) => median(all.map((each) => each[key]));
    const cells = [of('processes'), of('pssMiB').toFixed(0), (of('startMs') / 1000).toFixed(2)];
    process.stdout.write(`${`${packages.padEnd(12)}  ${cells.map((cell) => String(cell).padStart(9)).join('   ')}`}\n`);
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
