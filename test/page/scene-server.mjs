// A STDIO server with a fault: node test/page/scene-server.mjs [healthy|failing|slow|crashing|noisy|leaking|refused]
// `failing`: most calls fail. `slow`: a call takes seconds. `crashing`: the process ends every few calls. `noisy`: lines on stdout are no messages.
// `leaking`: a call takes memory that is never given back, up to a limit. `refused`: the process ends at its start.
import { createInterface } from 'node:readline';

const [mode = 'healthy'] = process.argv.slice(2);
/** With the clients of the scene, fewer crashes than a crash loop has. */
const callsUntilCrash = 25;
/** One second of silence: mono, 8 bits, 8,000 Hz. */
const sound = Buffer.concat([
  Buffer.from('RIFF'),
  uint32(36 + 8_000),
  Buffer.from('WAVEfmt '),
  uint32(16),
  Buffer.from([1, 0, 1, 0]),
  uint32(8_000),
  uint32(8_000),
  Buffer.from([1, 0, 8, 0]),
  Buffer.from('data'),
  uint32(8_000),
  Buffer.alloc(8_000, 128),
]);

function uint32(value) {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

const text = (value) => ({ type: 'text', text: value });
const schema = (properties = {}) => ({ type: 'object', properties });
const link = { type: 'resource_link', uri: 'report://today', name: 'today', title: 'Report of today' };

const tools = {
  query: {
    description: 'Answers a query',
    inputSchema: schema({ text: { type: 'string' } }),
    annotations: { readOnlyHint: true },
    call: ({ text: query = '' }) => ({ content: [text(`3 results for “${query}”`)] }),
  },
  report: {
    description: 'Returns a report: text, a link, a sound and structured content',
    inputSchema: schema(),
    call: () => ({
      content: [
        text('4 of 5 orders are paid.'),
        link,
        { type: 'audio', mimeType: 'audio/wav', data: sound.toString('base64') },
      ],
      structuredContent: { orders: 5, paid: 4 },
    }),
  },
  export: {
    description: 'Exports the orders, and reports its progress',
    inputSchema: schema(),
    async call(_, notify) {
      for (let progress = 1; progress <= 6; progress += 1) {
        await new Promise((resolve) => setTimeout(resolve, 250));
        notify({ progress, total: 6 });
      }
      return { content: [text('5 orders exported.')] };
    },
  },
  delete_file: {
    description: 'Deletes a file',
    inputSchema: schema({ path: { type: 'string' } }),
    annotations: { title: 'Delete a file', readOnlyHint: false, destructiveHint: true },
    call: ({ path = '' }) => ({ content: [text(`deleted ${path}`)] }),
  },
};

/** What the process that leaks keeps of each call, and at most. */
const leakBytes = 256 * 1_024;
const maxLeaks = 1_600;
const leaks = [];

const resources = [{ uri: link.uri, name: link.name, title: link.title, mimeType: 'text/plain' }];

let calls = 0;

/** Calls a tool, unless the fault of this server prevents that. */
async function call({ name, arguments: values = {}, _meta: { progressToken } = {} }) {
  calls += 1;
  if (mode === 'slow') await new Promise((resolve) => setTimeout(resolve, 2_000 + (calls % 4) * 700));
  if (mode === 'failing' && calls % 4 !== 0)
    return { isError: true, content: [text('SMTP 451: the mailbox is unavailable')] };
  if (mode === 'crashing' && calls % callsUntilCrash === 0) {
    process.stderr.write('reports: cannot open /var/lib/reports/index.db: disk I/O error\nreports: fatal, giving up\n');
    process.exit(70);
  }
  if (mode === 'noisy') process.stdout.write(`[debug] ${new Date().toISOString()} handled ${name}\n`);
  if (mode === 'leaking' && leaks.length < maxLeaks) leaks.push(Buffer.alloc(leakBytes, 1));
  const tool = tools[name];
  if (tool === undefined) return { isError: true, content: [text(`unknown tool ${name}`)] };
  return tool.call(values, (progress) => {
    if (progressToken === undefined) return;
    const params = { ...progress, progressToken };
    process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/progress', params })}\n`);
  });
}

const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {}, resources: {} },
    serverInfo: { name: `scene-${mode}`, version: '1.0.0' },
  }),
  ping: () => ({}),
  'tools/list': () => ({ tools: Object.entries(tools).map(([name, { call: _, ...tool }]) => ({ name, ...tool })) }),
  'tools/call': call,
  'resources/list': () => ({ resources }),
  'resources/templates/list': () => ({ resourceTemplates: [] }),
  'resources/read': ({ uri }) => ({ contents: [{ uri, mimeType: 'text/plain', text: 'Orders: 5. Paid: 4.' }] }),
};

if (mode === 'refused') {
  process.stderr.write('database: connect ECONNREFUSED 127.0.0.1:5432\n');
  process.exit(1);
}
if (mode === 'noisy') process.stdout.write('Starting chat server v3 …\n');
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params = {} } = JSON.parse(line);
  if (id === undefined) continue;
  const answer = answers[method];
  const write = (part) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...part })}\n`);
  if (answer === undefined) write({ error: { code: -32601, message: 'Method not found' } });
  else Promise.resolve(answer(params)).then((result) => write({ result }));
}
