// Sessions as a gateway writes them to its store: what a client and a server of the SDK say when they meet, and a call whose
// answer is a stream of progress.
import { createHash } from 'node:crypto';

const text = (value) => Buffer.from(JSON.stringify(value));

const initialize = text({
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: {
    protocolVersion: '2025-11-25',
    capabilities: { roots: { listChanged: true }, sampling: {}, elicitation: {} },
    clientInfo: { name: 'example-client', title: 'Example Client', version: '1.4.2' },
  },
});
const initialized = text({
  jsonrpc: '2.0',
  id: 0,
  result: {
    protocolVersion: '2025-11-25',
    capabilities: { tools: { listChanged: true }, resources: { subscribe: true, listChanged: true }, logging: {} },
    serverInfo: { name: 'example-server', title: 'Example Server', version: '2.0.1' },
    instructions: 'Use search before read. Paths are relative to the root that the client names.',
  },
});
const clientState = text({
  initialized: '{"jsonrpc":"2.0","method":"notifications/initialized"}',
  subscriptions: [],
});
const principal = { issuer: 'https://login.example.com', subject: 'user-4711', client: 'example-client' };

const digest = (of) => createHash('sha256').update(of).digest('base64url');
const serverDigest = digest('server');

/** The number of the stream that the call of a session has. */
export const stream = 1;

/** The key and the epoch of the session with this number. */
export const sessionOf = (number) => ({ key: digest(`session ${number}`), epoch: 1_790_000_000_000 });

/** The record that its owner writes. */
export const recordOf = (number, owner) => ({
  server: 'files',
  serverDigest,
  principal,
  owner,
  epoch: sessionOf(number).epoch,
  initialize,
  initialized,
  protocolVersion: '2025-11-25',
  clientState,
});

/**
 * Events `from` to `to` of a call of `count` events: the priming event with the pending request, progress of about 200 bytes, the
 * response that settles it.
 */
export function eventsOf(number, from, to, count) {
  const { epoch } = sessionOf(number);
  return Array.from({ length: to - from + 1 }, (_, index) => {
    const seq = from + index;
    const previous = seq === 1 ? undefined : { epoch, seq: seq - 1 };
    const event = { stream, seq, previous, data: dataOf(number, seq, count), last: seq === count };
    if (seq === 1) return { ...event, opens: [{ stream, id: 1, method: 'tools/call', text: undefined }] };
    return seq === count ? { ...event, settles: 1 } : event;
  });
}

/** What an event says, as it has to be read back. */
export function dataOf(number, seq, count) {
  if (seq === 1) return Buffer.alloc(0);
  const said = `session ${number} step ${seq} `.padEnd(100, 'x');
  if (seq === count) return text({ jsonrpc: '2.0', id: 1, result: { content: [{ type: 'text', text: said }] } });
  const params = { progressToken: 1, progress: seq, total: count, message: said };
  return text({ jsonrpc: '2.0', method: 'notifications/progress', params });
}
