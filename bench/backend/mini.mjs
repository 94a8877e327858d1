// The server of mini.c in Node, for machines without gcc: see there for its tools.
import { createInterface } from 'node:readline';

const write = (text) => process.stdout.write(`${text}\n`);
const answer = (id, result) => write(JSON.stringify({ jsonrpc: '2.0', id, result }));
const fail = (id, code, message) => write(JSON.stringify({ jsonrpc: '2.0', id, error: { code, message } }));
const tools = ['echo', 'progress'].map((name) => ({ name, inputSchema: { type: 'object' } }));

function call(id, { name, arguments: args = {}, _meta = {} }) {
  if (name === 'echo') {
    return answer(id, { content: [{ type: 'text', text: args.text ?? '' }], structuredContent: args.data });
  }
  if (name !== 'progress') return fail(id, -32602, 'unknown tool');
  const head = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${JSON.stringify(_meta.progressToken)}`;
  for (let i = 1; i <= args.n; i++) write(`${head},"progress":${i},"total":${args.n}}}`);
  answer(id, { content: [{ type: 'text', text: 'done' }] });
}

function handle({ id, method, params = {} }) {
  if (id === undefined || method === undefined) return;
  if (method === 'tools/call') return call(id, params);
  if (method === 'tools/list') return answer(id, { tools });
  if (method === 'ping') return answer(id, {});
  if (method !== 'initialize') return fail(id, -32601, 'Method not found');
  const serverInfo = { name: 'mini-node', version: '1.0.0' };
  answer(id, { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo });
}

createInterface({ input: process.stdin }).on('line', (line) => handle(JSON.parse(line)));
