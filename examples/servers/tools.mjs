// The tools of both example servers. `count` counts slowly, and reports progress. `where` returns the host that the server
// runs on. Both work without npm packages and without a network.
import { hostname } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';

const tools = [
  {
    name: 'count',
    description: 'Counts, and reports progress at each number.',
    inputSchema: {
      type: 'object',
      properties: {
        to: { type: 'integer', minimum: 1, maximum: 100_000, description: 'The last number.' },
        everyMs: { type: 'integer', minimum: 0, maximum: 60_000, description: 'Milliseconds between two numbers.' },
      },
      required: ['to'],
    },
  },
  {
    name: 'where',
    description: 'Returns the host that this server runs on.',
    inputSchema: { type: 'object', properties: {} },
    annotations: { readOnlyHint: true },
  },
];

const text = (words) => ({ content: [{ type: 'text', text: words }] });

const calls = {
  async count({ to, everyMs = 1_000 }, progressToken, send) {
    for (let progress = 1; progress <= to; progress += 1) {
      await delay(everyMs);
      if (progressToken === undefined) continue;
      send({ method: 'notifications/progress', params: { progressToken, progress, total: to } });
    }
    return text(`Counted to ${to} on ${hostname()}.`);
  },
  where: () => text(hostname()),
};

const revisions = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'];
const methods = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion: revisions.includes(protocolVersion) ? protocolVersion : revisions.at(-1),
    capabilities: { tools: {} },
    serverInfo: { name: 'demo', version: '1.0.0' },
  }),
  ping: () => ({}),
  'tools/list': () => ({ tools }),
  'tools/call': ({ name, arguments: given, _meta }, send) => calls[name]?.(given ?? {}, _meta?.progressToken, send),
};

/** Answers a client's message. `write` receives each JSON text that goes back to the client. */
export async function answer({ id, method, params }, write) {
  if (id === undefined || method === undefined) return;
  const send = (message) => write(JSON.stringify({ jsonrpc: '2.0', ...message }));
  const result = Object.hasOwn(methods, method) ? await methods[method](params ?? {}, send) : undefined;
  if (result !== undefined) return send({ id, result });
  send({ id, error: { code: -32601, message: 'There is no such method or tool.' } });
}
