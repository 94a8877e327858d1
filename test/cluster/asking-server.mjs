// A server whose call of `ask` asks its client only after somebody has asked for the list of tools. Any other tool is
// answered at once. Its argument is a file to which it appends what it gets: `call NAME`, `cancelled`, `answered`.
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const [, , notes] = process.argv;
const note = (what) => appendFileSync(notes, `${what}\n`);
const say = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
/** The calls that have not asked yet, and those that wait for an answer, by the id of their question. */
let held = [];
const asked = new Map();
let questions = 0;

function ask(id) {
  const question = `question-${++questions}`;
  asked.set(question, id);
  const requestedSchema = { type: 'object', properties: { name: { type: 'string' } } };
  say({ id: question, method: 'elicitation/create', params: { message: 'who', requestedSchema } });
}

const methods = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'asking', version: '1' },
  }),
  'tools/list'() {
    for (const id of held.splice(0)) ask(id);
    return { tools: ['ask', 'quick'].map((name) => ({ name, inputSchema: { type: 'object' } })) };
  },
};

const textOf = (text) => ({ content: [{ type: 'text', text }] });

createInterface({ input: process.stdin })
  .on('line', (line) => {
    const { id, method, params = {}, result } = JSON.parse(line);
    if (method === 'notifications/cancelled') {
      note('cancelled');
      held = held.filter((each) => each !== params.requestId);
      for (const [question, call] of asked) if (call === params.requestId) asked.delete(question);
    }
    if (method === undefined) {
      if (asked.has(id)) note('answered');
      if (asked.has(id)) say({ id: asked.get(id), result: textOf(JSON.stringify(result ?? {})) });
      asked.delete(id);
      return;
    }
    if (id === undefined) return;
    if (method !== 'tools/call') return say({ id, result: methods[method]?.(params) ?? {} });
    note(`call ${params.name}`);
    if (params.name === 'ask') held.push(id);
    else say({ id, result: textOf(params.name) });
  })
  .on('close', () => process.exit(0));
