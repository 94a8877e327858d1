// A server in little whose every message is numbered, so that a test knows what it said.
// `test/count`: progress 1 to `count` in bursts, then the answer. `test/tell`: the answer, then notifications `from` to
// `to`. `test/large`: an answer of so many bytes, after progress if it `reports`. `test/hold`: is not answered before `test/finish`; `test/emit` makes it report progress meanwhile. `test/lines`
// answers with the lines that came since the last time. As tools, for SDK clients, they have the same names; a `count`
// that `fails` is answered by a JSON-RPC error. Its argument, if there is one, is a file to which it appends the id of each
// `test/count` before it acts on it.
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';

const [, , notes] = process.argv;
const held = new Map();
const lines = [];
const write = (messages) => {
  const text = messages.map((message) => `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`).join('');
  return process.stdout.write(text) || new Promise((resolve) => process.stdout.once('drain', resolve));
};
const padOf = (n, pad) => 'ä€𝄞x'.repeat((n * 7) % (pad + 1));
const progress = (progressToken, n, pad) => ({
  method: 'notifications/progress',
  params: { progressToken, progress: n, message: padOf(n, pad) },
});
const told = (n, pad) => ({ method: 'notifications/told', params: { n, pad: padOf(n, pad) } });

async function inBursts({ from, to, burst, gapMs }, make) {
  for (let n = from; n <= to; n += burst) {
    await write(Array.from({ length: Math.min(burst, to - n + 1) }, (_, index) => make(n + index)));
    if (gapMs > 0) await delay(gapMs);
  }
}

const methods = {
  initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: {}, serverInfo: { name: 'c', version: '1' } }),
  ping: () => ({}),
  'tools/list': () => ({ tools: [] }),
  'test/lines': () => ({ lines: lines.splice(0).slice(0, -1) }),
  async 'test/count'({ count, burst, gapMs, pad, _meta }, id) {
    if (notes !== undefined) appendFileSync(notes, `${id}\n`);
    await inBursts({ from: 1, to: count, burst, gapMs }, (n) => progress(_meta.progressToken, n, pad));
    return { counted: count };
  },
  'test/large'({ bytes, reports, _meta }) {
    if (reports) write([progress(_meta.progressToken, 1, 0)]);
    return { text: 'x'.repeat(bytes) };
  },
  'test/hold'({ _meta }, id) {
    held.set(_meta.progressToken, { id, said: 0 });
  },
  'test/emit'({ token, count, pad }) {
    const call = held.get(token);
    write(Array.from({ length: count }, () => progress(token, ++call.said, pad)));
    return { said: call.said };
  },
  'test/finish'({ token }) {
    const { id, said } = held.get(token);
    held.delete(token);
    write([{ id, result: { counted: said } }]);
    return {};
  },
  async 'test/tell'({ from, to, burst, gapMs, pad }, id) {
    // The first burst shares the answer's write: no call that comes after the answer is in flight when it is read.
    const first = Math.min(to, from + burst - 1);
    const tell = (n) => told(n, pad);
    write([{ id, result: { content: [] } }, ...Array.from({ length: first - from + 1 }, (_, n) => tell(from + n))]);
    if (gapMs > 0) await delay(gapMs);
    await inBursts({ from: first + 1, to, burst, gapMs }, tell);
  },
};

const asTool = (result) => result && { content: [{ type: 'text', text: JSON.stringify(result) }] };
methods['tools/call'] = async ({ name, arguments: args, _meta }, id) => {
  const result = await methods[name]({ ...args, _meta }, id);
  if (args.fails) return void write([{ id, error: { code: -32099, message: 'failed as asked' } }]);
  return asTool(result);
};

createInterface({ input: process.stdin })
  .on('line', async (line) => {
    lines.push(line);
    const { id, method, params } = JSON.parse(line);
    if (id === undefined || method === undefined) return;
    const result = await methods[method]?.(params ?? {}, id);
    if (result !== undefined) write([{ id, result }]);
  })
  .on('close', () => process.exit(0));
