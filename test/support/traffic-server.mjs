// A server in little for traffic: every message that it says bears the mark of the call that it belongs to. Its argument, if
// there is one, is a file to which it appends the mark of each call as it begins to run it: those of all processes.
// `count` reports progress 1 to `count`, `wait` is answered after `ms`, `quick` at once, `tell` makes it say `count`
// notifications outside of the call, `hold` is never answered; `tools/list` is harmless to run again. A second argument is
// a time in milliseconds: so often it says the next number of its process, which belongs to no call.
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';

const [, , notes, tickMs] = process.argv;
let calls = 0;
const say = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const answer = (id, mark, more = {}) => {
  const text = JSON.stringify({ mark, pid: process.pid, calls, ...more });
  say({ id, result: { content: [{ type: 'text', text }] } });
};

const tools = {
  quick: () => ({}),
  hold: () => new Promise(() => undefined),
  async wait({ ms }) {
    await delay(ms);
    return { waited: ms };
  },
  async count({ count, gapMs, mark }, progressToken) {
    for (let progress = 1; progress <= count; progress++) {
      say({ method: 'notifications/progress', params: { progressToken, progress, total: count, message: mark } });
      if (gapMs > 0) await delay(gapMs);
    }
    return { counted: count };
  },
  tell({ count, mark }) {
    for (let n = 1; n <= count; n++) say({ method: 'notifications/told', params: { n, mark } });
    return { told: count };
  },
};

let ticks = 0;
const tick = () => say({ method: 'notifications/ticked', params: { pid: process.pid, n: ++ticks } });

createInterface({ input: process.stdin })
  .on('line', async (line) => {
    const { id, method, params = {} } = JSON.parse(line);
    if (method === 'notifications/initialized' && Number(tickMs) > 0) setInterval(tick, Number(tickMs));
    if (id === undefined || method === undefined) return;
    const { protocolVersion, name, arguments: args = {}, _meta: { progressToken, mark = args.mark } = {} } = params;
    if (method === 'initialize') {
      const capabilities = { tools: {} };
      return say({ id, result: { protocolVersion, capabilities, serverInfo: { name: 'traffic', version: '1' } } });
    }
    calls += 1;
    if (notes !== undefined && mark !== undefined) appendFileSync(notes, `${mark}\n`);
    if (method === 'tools/list') return say({ id, result: { tools: [], mark } });
    const tool = method === 'tools/call' ? tools[name] : undefined;
    if (tool === undefined) return say({ id, result: {} });
    answer(id, mark, await tool(args, progressToken));
  })
  .on('close', () => process.exit(0));
