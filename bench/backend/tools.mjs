// What the servers in Node.js answer: see mini.c for the tools.
const tools = ['echo', 'progress'].map((name) => ({ name, inputSchema: { type: 'object' } }));

/** Answers a message; `write` gets each JSON text. */
export function handle({ id, method, params = {} }, write) {
  if (id === undefined || method === undefined) return;
  const answer = (result) => write(JSON.stringify({ jsonrpc: '2.0', id, result }));
  const fail = (code, message) => write(JSON.stringify({ jsonrpc: '2.0', id, error: { code, message } }));
  if (method === 'tools/call') return call(params, { write, answer, fail });
  if (method === 'tools/list') return answer({ tools });
  if (method === 'ping') return answer({});
  if (method === 'server/discover') {
    return answer({
      resultType: 'complete',
      supportedVersions: ['2026-07-28'],
      capabilities: { tools: {} },
      ttlMs: 0,
      cacheScope: 'private',
    });
  }
  if (method !== 'initialize') return fail(-32601, 'Method not found');
  const serverInfo = { name: 'mini-node', version: '1.0.0' };
  answer({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo });
}

function call({ name, arguments: args = {}, _meta = {} }, { write, answer, fail }) {
  if (name === 'echo') {
    return answer({ content: [{ type: 'text', text: args.text ?? '' }], structuredContent: args.data });
  }
  if (name !== 'progress') return fail(-32602, 'unknown tool');
  const head = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${JSON.stringify(_meta.progressToken)}`;
  for (let i = 1; i <= args.n; i++) write(`${head},"progress":${i},"total":${args.n}}}`);
  answer({ content: [{ type: 'text', text: 'done' }] });
}
