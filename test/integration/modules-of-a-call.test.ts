import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { everythingFixture, root, startGateway } from '../support/gateway.ts';
import { noteMeasure, targetOf } from '../support/measures.ts';
import { passedObjects } from '../support/passed-objects.ts';
import { serverEntry, writeViewFile } from '../support/view-file.ts';
import { waitFor } from '../support/wait-for.ts';

const program = [
  process.execPath,
  '--enable-source-maps',
  '--import',
  `${root}test/fixtures/capture-stacks.mjs`,
  `${root}dist/main.js`,
];
const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };

/** The modules of a stack, without repetitions, in the order in which the message meets them. */
const modulesIn = (stack: string): readonly string[] => [
  ...new Set([...stack.matchAll(/src\/([\w/-]+\.ts):\d+/g)].map(([, file = '']) => file).toReversed()),
];

/** The files that docs/design.md names under a heading. */
function documentedUnder(heading: string): readonly string[] {
  const page = readFileSync(`${root}docs/design.md`, 'utf8');
  const section = page.split(`\n### ${heading}\n`)[1]?.split('\n#')[0] ?? '';
  return [...section.matchAll(/\(\.\.\/src\/([\w/-]+\.ts)\)/g)].map(([, file = '']) => file);
}

/**
 * The stacks of one call: of the write to the server's stdin, and of the write of its answer to the client. The call is made
 * in the last session of several.
 */
async function stacksOfCall(options: Parameters<typeof startGateway>[0], path: string, tool: string, sessions = 1) {
  const gateway = await startGateway({
    ...options,
    program,
    // Only Node.js itself reads the map of the code that it loads.
    env: { NODE_DISABLE_COMPILE_CACHE: '1' },
    args: ['--sse.streamAfter', '1m', ...(options?.args ?? [])],
  });
  const post = (message: object, more: Record<string, string> = {}) =>
    fetch(`${gateway.baseUrl}${path}`, {
      method: 'POST',
      headers: { ...headers, ...more },
      body: JSON.stringify(message),
    });

  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } };
  let session = {};
  for (let opened = 0; opened < sessions; opened += 1) {
    const { headers } = await post({ jsonrpc: '2.0', id: 0, method: 'initialize', params });
    session = { 'mcp-session-id': headers.get('mcp-session-id') ?? '' };
    await post({ jsonrpc: '2.0', method: 'notifications/initialized' }, session);
  }
  await (await post({ jsonrpc: '2.0', id: 1, method: 'tools/list' }, session)).text();
  const args = { message: 'walk-marker', text: 'walk-marker' };
  const call = { jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name: tool, arguments: args } };
  expect(await (await post(call, session)).text()).toContain('walk-marker');

  const stacks = () => gateway.logs().flatMap(({ stack }) => (typeof stack === 'string' ? [stack] : []));
  await waitFor(() => stacks().length >= 2, { what: 'the stacks of both writes' });
  const [toServer = '', toClient = ''] = stacks();
  return { toServer, toClient };
}

it('a local call passes the modules that docs/design.md lists, and no other', async () => {
  const { toServer, toClient } = await stacksOfCall({ command: everythingFixture }, '/mcp', 'echo');
  const [modulesIntoServer, modulesToClient] = [modulesIn(toServer), modulesIn(toClient)];
  const objects = passedObjects(toServer, 'ServerLink', 'StdioBackend');
  noteMeasure('files-in', modulesIntoServer.length);
  noteMeasure('hops-out', modulesToClient.length);
  noteMeasure('objects-to-process', objects.length);
  // The limits of the house: a step that only passes a message on is no step.
  expect(modulesIntoServer.length).toBeLessThanOrEqual(targetOf('files-in'));
  expect(modulesToClient.length).toBeLessThanOrEqual(targetOf('hops-out'));
  expect(modulesIntoServer).toEqual(documentedUnder('From the body of a request to stdin'));
  expect(modulesToClient).toEqual(documentedUnder('From stdout to the answer'));
  expect(objects.length).toBeLessThanOrEqual(targetOf('objects-to-process'));
  expect(objects.at(-1)).toBe('StdioBackend');
});

/** The link asks each filter, and goes on by itself. So a filter is not in the stack, but the message passes it. */
const filters = 1;

it('a call in a view of three servers, with a filter and a shared process, passes few objects', async () => {
  const server = serverEntry(everythingFixture, { share: 'all', denyTools: ['none'] });
  const view = { servers: ['a', 'b', 'c'] };
  const { args } = await writeViewFile({ a: server, b: server, c: server }, { view });
  // The first session of a server passes one more: the answer to its `initialize` decides the era.
  const { toServer } = await stacksOfCall({ args }, '/view/mcp', 'a__echo', 2);
  const objects = passedObjects(toServer, 'ServerLink', 'StdioBackend');
  noteMeasure('objects-in-view', objects.length + filters);
  const inView = ['ViewBackend', 'Member', 'ReusableBackend', 'InitializedProcess', 'StdioBackend'];
  expect(objects.filter((name) => name !== 'Link')).toEqual(inView);
  expect(objects.length + filters).toBeLessThanOrEqual(targetOf('objects-in-view'));
});
