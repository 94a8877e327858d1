// A server whose calls are held until a test lets them go, for faults in the middle of a call. Its argument is a file to
// which the processes of it append the mark of each call as they begin to run it. The first run of a mark reports progress 1
// to `reports` and is then held until `test/release` names the mark; with `reports` one more progress comes before the
// answer. A later run, after the process that held it was lost, is not held.
import { appendFileSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const [, , notes] = process.argv;
const held = new Map();
const say = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const hasRun = (mark) => readFileSync(notes, { encoding: 'utf8', flag: 'a+' }).split('\n').includes(mark);

function run(id, { mark, reports = 0, progressToken }) {
  const report = (progress) =>
    say({ method: 'notifications/progress', params: { progressToken, progress, message: mark } });
  const isAgain = hasRun(mark);
  appendFileSync(notes, `${mark}\n`);
  const finish = () => {
    held.delete(mark);
    if (reports > 0) report(reports + 1);
    say({ id, result: { contents: [], content: [], mark, pid: process.pid } });
  };
  for (let progress = 1; progress <= reports; progress++) report(progress);
  if (isAgain) finish();
  else held.set(mark, finish);
}

const methods = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {}, resources: {} },
    serverInfo: { name: 'held', version: '1' },
  }),
  ping: () => ({}),
  'test/release': ({ mark }) => ({ released: held.has(mark), ...held.get(mark)?.() }),
};

createInterface({ input: process.stdin })
  .on('line', (line) => {
    const { id, method, params = {} } = JSON.parse(line);
    if (id === undefined || method === undefined) return;
    if (params._meta?.mark !== undefined) return run(id, params._meta);
    say({ id, result: methods[method]?.(params) ?? {} });
  })
  .on('close', () => process.exit(0));
