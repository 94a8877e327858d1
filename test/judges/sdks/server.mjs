// The server behind the gateway for the SDKs: legacy, over STDIO. `echo` is answered at once, `count` reports progress 30
// times in 3 s, `hold` is answered only if it is cancelled. Its argument is a file, to which it appends what it runs and
// which of it was cancelled, with the name of the client.
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';

const [, , notes] = process.argv;
const steps = 30;
const stepMs = 100;
const running = new Map();
const say = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const note = (...words) => appendFileSync(notes, `${words.join(' ')}\n`);

const inputSchema = { type: 'object', properties: { client: { type: 'string' } }, required: ['client'] };
const tools = ['echo', 'count', 'hold'].map((name) => ({ name, description: name, inputSchema }));

async function call(id, name, client, progressToken) {
  note('begun', name, client);
  running.set(id, { name, client });
  if (name === 'hold') return;
  for (let progress = 1; name === 'count' && progress <= steps; progress++) {
    await delay(stepMs);
    say({ method: 'notifications/progress', params: { progressToken, progress, total: steps } });
    if (progress === steps / 2) note('half of count', client);
  }
  running.delete(id);
  say({ id, result: { content: [{ type: 'text', text: `${name}: ${client}` }] } });
}

const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'sdks', version: '1.0.0' },
  }),
  'tools/list': () => ({ tools }),
  ping: () => ({}),
};

createInterface({ input: process.stdin })
  .on('line', (line) => {
    const { id, method, params = {} } = JSON.parse(line);
    if (method === 'notifications/cancelled') {
      const cancelled = running.get(params.requestId);
      if (cancelled !== undefined) note('cancelled', cancelled.name, cancelled.client);
    }
    if (id === undefined || method === undefined) return;
    if (method === 'tools/call') return call(id, params.name, params.arguments.client, params._meta?.progressToken);
    const answer = answers[method];
    say(
      answer === undefined
        ? { id, error: { code: -32601, message: 'Method not found' } }
        : { id, result: answer(params) },
    );
  })
  .on('close', () => process.exit(0));
