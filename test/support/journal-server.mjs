// A server that keeps a journal of its calls, for tests that compare answers with it. Its argument is the file, which all
// of its processes share. It appends `started <call>` before it acts on a call and `done <call>` before it answers; both
// writes are synchronous. A call is named by its argument `call`, else by `params._meta.mark`.
// Tools: `work` reports progress 1 to `reports` and is answered after `ms`; `hold` does the same and is never answered;
// `ask` elicits input of its client, and is answered with it.
import { openSync, writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';

const [, , file] = process.argv;
const journal = openSync(file, 'a');
const say = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const inputSchema = { type: 'object', properties: { call: { type: 'string' } } };
const asked = new Map();

const tools = {
  async work({ ms = 0, reports = 0 }, { token, call }) {
    report(reports, token, call);
    if (ms > 0) await delay(ms);
    return {};
  },
  hold({ reports = 0 }, { token, call }) {
    report(reports, token, call);
    return new Promise(() => undefined);
  },
  ask(_, { call }) {
    const id = `ask ${call}`;
    const requestedSchema = { type: 'object', properties: { word: { type: 'string' } } };
    say({ id, method: 'elicitation/create', params: { message: call, requestedSchema } });
    return new Promise((resolve) => asked.set(id, resolve));
  },
};

function report(reports, progressToken, call) {
  for (let progress = 1; progressToken !== undefined && progress <= reports; progress++)
    say({ method: 'notifications/progress', params: { progressToken, progress, message: call } });
}

async function run(id, { name, arguments: args = {}, _meta: { progressToken: token, mark } = {} }) {
  const call = args.call ?? mark;
  writeSync(journal, `started ${call}\n`);
  const result = await tools[name](args, { token, call });
  writeSync(journal, `done ${call}\n`);
  const text = JSON.stringify({ call, pid: process.pid, ...result });
  say({ id, result: { content: [{ type: 'text', text }] } });
}

createInterface({ input: process.stdin })
  .on('line', (line) => {
    const { id, method, params = {}, result, error } = JSON.parse(line);
    if (method === undefined) {
      asked.get(id)?.({ answer: result ?? error });
      asked.delete(id);
    } else if (id === undefined) return;
    else if (method === 'initialize') {
      const { protocolVersion } = params;
      say({
        id,
        result: { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'journal', version: '1' } },
      });
    } else if (method === 'tools/list')
      say({ id, result: { tools: Object.keys(tools).map((name) => ({ name, inputSchema })) } });
    else if (method === 'tools/call' && Object.hasOwn(tools, params.name)) void run(id, params);
    else if (method === 'ping') say({ id, result: {} });
    else say({ id, error: { code: -32601, message: `There is no ${method}` } });
  })
  .on('close', () => process.exit(0));
