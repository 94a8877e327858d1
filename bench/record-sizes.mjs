// node bench/record-sizes.mjs [--only a,b] [--chromium PATH]
//
// Starts each published server of npm that the judges know (test/judges/published-servers.ts), without a gateway, plays a
// session with it, and records all messages. Writes how many messages of each size there were, by kind, to
// bench/load/real-sizes.json, and the messages themselves to bench/results/real-messages.jsonl, which `real-scan.mjs` reads.
// The session: `initialize`, all lists, the calls that the judges make, a call of an unknown tool, a resource and a prompt.
// Servers that work without the internet also do what an agent asks of them: they read and search this repository, and use
// a browser. Needs Node.js 22.18 or newer, which reads TypeScript.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { asked, stepsAfter, stepsFor, withServer } from '../test/judges/asking-servers.ts';
import { installServers } from '../test/judges/install-clients.ts';
import { publishedServers } from '../test/judges/published-servers.ts';
import { readCommand } from './lib/command.mjs';

const { values } = readCommand(import.meta, { only: { type: 'string' }, chromium: { type: 'string' } });
const chromium = values.chromium ?? '/usr/bin/chromium';

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '..');
const messagesFile = path.join(root, 'bench/results/real-messages.jsonl');
const sizesFile = path.join(root, 'bench/load/real-sizes.json');
const answerWithinMs = 30_000;

const files = [
  'README.md',
  'package.json',
  'src/README.md',
  'src/core/session/session.ts',
  'packages/json-scan/src/scan.ts',
];
const page = `data:text/html,${encodeURIComponent(
  `<title>Orders</title><h1>Orders</h1><table>${Array.from({ length: 60 }, (_, row) => `<tr><td>${row}<td><a href="/orders/${row}">Order ${row}</a><td><button>Cancel</button></tr>`).join('')}</table>`,
)}`;

/** What an agent asks of the servers that work without the internet. */
const work = {
  '@modelcontextprotocol/server-filesystem': [
    ['list_directory', { path: root }],
    ['directory_tree', { path: path.join(root, 'src/core/session') }],
    ['search_files', { path: path.join(root, 'src'), pattern: '**/*store*' }],
    ...files.map((file) => ['read_text_file', { path: path.join(root, file) }]),
    ['read_multiple_files', { paths: files.slice(0, 3).map((file) => path.join(root, file)) }],
    ['write_file', { path: '<folder>/notes.md', content: 'One line.\n'.repeat(40) }],
    ['edit_file', { path: '<folder>/notes.md', edits: [{ oldText: 'One line.\n', newText: 'Another line.\n' }] }],
  ],
  '@wonderwhy-er/desktop-commander': [
    ['list_directory', { path: path.join(root, 'src'), depth: 2 }],
    ...files.map((file) => ['read_file', { path: path.join(root, file) }]),
    ['start_search', { path: path.join(root, 'src'), pattern: 'StoreUnavailable', searchType: 'content' }],
    ['start_process', { command: `git -C ${root} log -n 30`, timeout_ms: 5_000 }],
  ],
  'mcp-server-commands': [
    `git -C ${root} log -n 30`,
    `git -C ${root} show --stat HEAD`,
    `cat ${root}/src/core/session/session.ts`,
    `grep -rn StoreUnavailable ${root}/src`,
    `ls -la ${root}`,
  ].map((words) => ['run_process', { mode: 'shell', command_line: words }]),
  '@modelcontextprotocol/server-memory': [
    [
      'create_entities',
      {
        entities: Array.from({ length: 30 }, (_, at) => ({
          name: `Person ${at}`,
          entityType: 'person',
          observations: ['works on the gateway', 'writes "plain" English'],
        })),
      },
    ],
    ['read_graph', {}],
    ['search_nodes', { query: 'Person 1' }],
  ],
  'n8n-mcp': [
    ['search_nodes', { query: 'http request' }],
    ['get_node', { nodeType: 'nodes-base.httpRequest' }],
    ['get_node', { nodeType: 'nodes-base.slack', detail: 'full' }],
    ['search_templates', { query: 'slack' }],
    ['tools_documentation', {}],
  ],
  '@playwright/mcp': [
    ['browser_navigate', { url: page }],
    ['browser_snapshot', {}],
    ['browser_take_screenshot', {}],
  ],
  'chrome-devtools-mcp': [
    ['navigate_page', { url: page }],
    ['take_snapshot', {}],
    ['take_screenshot', {}],
  ],
  '@eslint/mcp': [['lint-files', { filePaths: [path.join(root, 'bench/bench.mjs')] }]],
  '@angular/cli': [['get_best_practices', {}]],
};

/** Options that only this run needs. */
const words = {
  '@modelcontextprotocol/server-filesystem': ` ${root}`,
  '@playwright/mcp': ` --executable-path ${chromium}`,
  'chrome-devtools-mcp': ` --executablePath ${chromium} --isolated --chromeArg=--no-sandbox`,
};

await installServers();
rmSync(messagesFile, { force: true });
mkdirSync(path.dirname(messagesFile), { recursive: true });
const only = values.only?.split(',');
const recorded = [];
const silent = [];
for (const server of publishedServers.filter(({ name }) => only?.includes(name) ?? true)) {
  const messages = await record(server).catch((error) => {
    process.stderr.write(`${server.name}: ${error.message}\n`);
    return [];
  });
  if (messages.length === 0) silent.push(server.name);
  for (const message of messages)
    appendFileSync(messagesFile, `${JSON.stringify({ server: server.name, ...message })}\n`);
  recorded.push(...messages);
  process.stdout.write(`${server.name}: ${messages.length} messages\n`);
}
if (only === undefined) writeFileSync(sizesFile, `${JSON.stringify(histogramOf(recorded), null, 2)}\n`);

/** Plays a session. Resolves with the messages of both sides, in their order. */
function record(server) {
  const withOptions = { ...server, words: `${server.words}${words[server.name] ?? ''}` };
  return withServer(withOptions, async (prepared) => {
    const { command, env, folder } = prepared;
    const [file, ...args] = command;
    const child = spawn(file, args, { cwd: folder, env, detached: true, stdio: ['pipe', 'pipe', 'ignore'] });
    const exited = once(child, 'exit');
    const messages = [];
    const waiting = new Map();
    const take = (text) => {
      if (!text.startsWith('{')) return;
      const { id, method } = JSON.parse(text);
      const request = method === undefined ? waiting.get(id) : undefined;
      messages.push({ from: 'server', kind: request?.kind ?? 'other', text });
      request?.settle(text);
    };
    let rest = '';
    child.stdout.setEncoding('utf8').on('data', (chunk) => {
      const lines = `${rest}${chunk}`.split('\n');
      rest = lines.pop();
      lines.forEach(take);
    });
    const send = (kind, message) => {
      const text = JSON.stringify(message);
      messages.push({ from: 'client', kind, text });
      child.stdin.write(`${text}\n`);
    };
    let ids = 0;
    const ask = async ({ method, params }) => {
      const id = ids++;
      const kind = kindOf(method);
      const answer = new Promise((settle, fail) => {
        waiting.set(id, { kind, settle });
        setTimeout(() => fail(new Error(`no answer to ${method}`)), answerWithinMs).unref();
        exited.then(([code]) => fail(new Error(`ended with ${code}`)));
      });
      answer.catch(() => undefined);
      send(kind, { jsonrpc: '2.0', id, method, params });
      return answer;
    };
    const answers = new Map();
    const play = async (steps) => {
      for (const step of steps) answers.set(step.name, await ask(asked(step, prepared)));
    };
    try {
      const clientInfo = { name: 'recorder', version: '1.0.0' };
      await ask({ method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo } });
      send('other', { jsonrpc: '2.0', method: 'notifications/initialized' });
      await play(stepsFor(server));
      await play(stepsAfter(server, answers));
      const calls = work[server.name] ?? [];
      await play(
        calls.map(([name, args], at) => ({
          name: `work ${at}`,
          method: 'tools/call',
          params: { name, arguments: args },
        })),
      );
    } catch (error) {
      process.stderr.write(`${server.name}: ${error.message}; what it said so far is recorded\n`);
    } finally {
      if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid, 'SIGKILL');
    }
    await exited;
    return messages;
  });
}

function kindOf(method) {
  if (method === 'tools/call') return 'call';
  return method.endsWith('/list') ? 'list' : 'other';
}

/** How many messages have at most so many bytes: powers of two, by side and kind. */
function histogramOf(messages) {
  const counts = {};
  for (const { from, kind, text } of messages) {
    const name = `${kind}, from the ${from}`;
    const bound = 2 ** Math.ceil(Math.log2(Buffer.byteLength(text)));
    counts[name] = { ...counts[name], [bound]: (counts[name]?.[bound] ?? 0) + 1 };
  }
  return {
    command: 'node bench/record-sizes.mjs',
    at: new Date().toISOString().slice(0, 10),
    servers: publishedServers.length - silent.length,
    silent,
    messagesOfAtMostBytes: counts,
  };
}
