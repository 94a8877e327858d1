#!/usr/bin/env node
// A server that floods whoever uses it. The argument is its transport: stdio, sse, http or ws. Those with a port write it as
// their first line. A call of the tool `flood` names the kind of flood; some floods are the answers to later requests.
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import { WebSocketServer } from 'ws';

const mebibyte = 2 ** 20;
const many = (text, bytes) => text.repeat(Math.floor(bytes / text.length));
const list = (piece, bytes) => many(piece, bytes).slice(0, -1);
const note = (data) => `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":${data}}}`;
const numbered = (count, text) => Array.from({ length: count }, (_, n) => text(n));

/** What the server writes before it answers the call. Each text is a line, an event or a frame. */
const floods = {
  'lines that are no messages': () => numbered(200_000, () => 'x'),
  'broken JSON': () => numbered(100, () => `{"jsonrpc":"2.0","x":[${list('1,', 64_000)}`),
  'small requests': () => numbered(20_000, (n) => `{"jsonrpc":"2.0","id":${n},"method":"ping"}`),
  'small notifications': () => numbered(30_000, () => note('1')),
  'answers to nobody': () => numbered(30_000, (n) => `{"jsonrpc":"2.0","id":${n + 1e6},"result":{}}`),
  progress: ({ token }) =>
    numbered(40_000, (n) =>
      JSON.stringify({
        jsonrpc: '2.0',
        method: 'notifications/progress',
        params: { progressToken: token, progress: n },
      }),
    ),
  batches: () => numbered(40, () => `[${numbered(500, () => note('1')).join()}]`),
  'values without end': () => [note(`[${list('0,', 8 * mebibyte)}]`)],
  'escapes without end': () => [note(`"${many('\\n', 8 * mebibyte)}"`)],
  'objects in objects': () => [
    note(`${many('{"a":', 4_000)}1${many('}', 800)}`),
    note(`[${list(`${many('{"a":', 500)}1${'}'.repeat(100)},`, 4 * mebibyte)}]`),
  ],
  'one text of 54 MB': () => [note(`"${'x'.repeat(54_000_000)}"`)],
  'texts just below the limit': () => numbered(10, () => note(`[${list('0,', 511 * 1024)}]`)),
};

const mirrored = `{"type":"object","anyOf":[${list('{},', 63_000)},{"x-mcp-header":1}]}`;
const tool = (n, schema = '{"type":"object"}') => `{"name":"t${n}","inputSchema":${schema}}`;

/** Lists that cost much, by the kind of the flood. The call only chooses the list. */
const lists = {
  'millions of tools': () => list('1,', 8 * mebibyte),
  'many tools': () => numbered(99_000, (n) => tool(n)).join(),
  'as many tools as are read': () =>
    numbered(9_000, (n) => tool(n, `{"type":"object","x":"${'x'.repeat(600)}"}`)).join(),
  'large schemas with headers': () => numbered(115, (n) => tool(n, mirrored)).join(),
  'required arguments': () => tool('1', `{"type":"object","required":[${list('"a",', 8 * mebibyte)}]}`),
  'many templates': () => '',
};

const templates = numbered(1_000, (n) => `{"name":"t","uriTemplate":"x:${many('{a}b', 1_000)}${n}"}`).join();
let kind = '';

/** The texts with which the server answers a message. */
function answer({ id, method, params }) {
  if (id === undefined) return [];
  const result = (text) => `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${text}}`;
  if (method === 'initialize') {
    const capabilities = { tools: {}, resources: {}, logging: {} };
    const serverInfo = { name: 'hostile', version: '1' };
    return [result(JSON.stringify({ protocolVersion: params.protocolVersion, capabilities, serverInfo }))];
  }
  if (method === 'tools/list')
    return [
      result(`{"tools":[${[tool('flood').replace('tflood', 'flood'), lists[kind]?.() ?? ''].filter(Boolean).join()}]}`),
    ];
  if (method === 'resources/templates/list')
    return [result(`{"resourceTemplates":[${kind === 'many templates' ? templates : ''}]}`)];
  if (method === 'resources/list') return [result('{"resources":[]}')];
  if (method !== 'tools/call') return [result('{}')];
  kind = params.arguments?.kind ?? '';
  const texts = floods[kind]?.({ token: params._meta?.progressToken }) ?? [];
  return [...texts, result('{"content":[]}')];
}

const answersTo = (text) => {
  const message = JSON.parse(text);
  return 'method' in message ? answer(message) : [];
};
const asEvents = (texts) => texts.map((text) => `data: ${text}\n\n`).join('');

async function bodyOf(incoming) {
  const chunks = [];
  for await (const chunk of incoming) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

const transports = {
  stdio() {
    createInterface({ input: process.stdin }).on('line', (line) => {
      for (const text of answersTo(line)) process.stdout.write(`${text}\n`);
    });
  },
  sse() {
    const streams = new Map();
    let next = 0;
    return createServer(async (incoming, outgoing) => {
      if (incoming.method === 'GET') {
        const name = `/post/${++next}`;
        streams.set(name, outgoing);
        outgoing.writeHead(200, { 'content-type': 'text/event-stream' });
        return outgoing.write(`event: endpoint\ndata: ${name}\n\n`);
      }
      const texts = answersTo(await bodyOf(incoming));
      outgoing.writeHead(202).end();
      streams.get(incoming.url)?.write(asEvents(texts));
    });
  },
  http: () =>
    createServer(async (incoming, outgoing) => {
      if (incoming.method !== 'POST') return outgoing.writeHead(405).end();
      const texts = answersTo(await bodyOf(incoming));
      if (texts.length === 0) return outgoing.writeHead(202).end();
      outgoing.writeHead(200, { 'content-type': 'text/event-stream', 'mcp-session-id': 'one' }).end(asEvents(texts));
    }),
  ws() {
    const server = createServer();
    new WebSocketServer({ server, handleProtocols: () => 'mcp' }).on('connection', (peer) => {
      peer.on('message', (data) => {
        for (const text of answersTo(data.toString())) peer.send(text);
      });
      peer.on('error', () => undefined);
    });
    return server;
  },
};

const server = transports[process.argv[2] ?? 'stdio']();
server?.listen(0, '127.0.0.1', () => process.stdout.write(`${server.address().port}\n`));
