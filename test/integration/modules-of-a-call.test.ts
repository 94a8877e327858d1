import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { everythingFixture, root, startGateway } from '../support/gateway.ts';
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

it('a local call passes the modules that docs/design.md lists, and no other', async () => {
  const gateway = await startGateway({
    program,
    command: everythingFixture,
    args: ['--sse.streamAfter', '1m'],
  });
  const post = (message: object, more: Record<string, string> = {}) =>
    fetch(gateway.url, { method: 'POST', headers: { ...headers, ...more }, body: JSON.stringify(message) });

  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } };
  const opened = await post({ jsonrpc: '2.0', id: 0, method: 'initialize', params });
  const session = { 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '' };
  await post({ jsonrpc: '2.0', method: 'notifications/initialized' }, session);
  const args = { message: 'walk-marker', text: 'walk-marker' };
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'echo', arguments: args } };
  expect(await (await post(call, session)).text()).toContain('walk-marker');

  const stacks = () => gateway.logs().flatMap(({ stack }) => (typeof stack === 'string' ? [stack] : []));
  await waitFor(() => stacks().length >= 2, { what: 'the stacks of both writes' });
  const [toServer = '', toClient = ''] = stacks();
  // The limits of the house: a step that only passes a message on is no step.
  expect(modulesIn(toServer).length).toBeLessThanOrEqual(24);
  expect(modulesIn(toClient).length).toBeLessThanOrEqual(12);
  expect(modulesIn(toServer)).toEqual(documentedUnder('From the body of a request to stdin'));
  expect(modulesIn(toClient)).toEqual(documentedUnder('From stdout to the answer'));
});
