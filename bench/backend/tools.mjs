// What the servers in Node.js answer: see mini.c for `echo` and `progress`. The others are for trials of gateways (lib/trials.mjs).
import { setTimeout as sleep } from 'node:timers/promises';

const tools = ['echo', 'progress', 'pid', 'wait', 'ask'].map((name) => ({ name, inputSchema: { type: 'object' } }));

/** What is done with the answer to a question of the server, by its id. */
const asked = new Map();

/** Answers a message; `write` gets each JSON text. */
export function handle({ id, method, params = {}, result }, write) {
  if (method === undefined) asked.get(id)?.(result);
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

/** The server in a revision with sessions only, as official ones are: nothing but `initialize` before `initialize`. */
export function legacy() {
  let isOpen = false;
  return (message, write) => {
    isOpen ||= message.method === 'initialize';
    if (isOpen && message.method !== 'server/discover') return handle(message, write);
    if (message.id === undefined) return;
    const error = { code: isOpen ? -32601 : -32600, message: isOpen ? 'Method not found' : 'Not initialized' };
    write(JSON.stringify({ jsonrpc: '2.0', id: message.id, error }));
  };
}

const textOf = (text) => ({ content: [{ type: 'text', text }] });

/** `events` times progress with `tag`, `ms` apart, then the answer. */
async function wait({ ms = 0, events = 0, tag }, progressToken, { write, answer }) {
  for (let progress = 1; progress <= events; progress++) {
    const params = { progressToken, progress, total: events, message: tag };
    write(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/progress', params }));
    await sleep(ms);
  }
  if (events === 0) await sleep(ms);
  answer(textOf(`${tag}`));
}

/** Asks the client something, and answers with what it said. */
function ask({ tag }, { write, answer }) {
  asked.set(tag, (result) => answer(textOf(`${result?.action} ${tag}`)));
  const params = { message: tag, requestedSchema: { type: 'object', properties: {} } };
  write(JSON.stringify({ jsonrpc: '2.0', id: tag, method: 'elicitation/create', params }));
}

function call({ name, arguments: args = {}, _meta = {} }, { write, answer, fail }) {
  if (name === 'pid') return answer(textOf(`${process.pid}`));
  if (name === 'wait') return wait(args, _meta.progressToken, { write, answer });
  if (name === 'ask') return ask(args, { write, answer });
  if (name === 'echo') {
    return answer({ content: [{ type: 'text', text: args.text ?? '' }], structuredContent: args.data });
  }
  if (name !== 'progress') return fail(-32602, 'unknown tool');
  const head = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${JSON.stringify(_meta.progressToken)}`;
  for (let i = 1; i <= args.n; i++) write(`${head},"progress":${i},"total":${args.n}}}`);
  answer({ content: [{ type: 'text', text: 'done' }] });
}
