// The traces of clients that keep no session, at published servers with state: the second turn meets what the first one left.
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { startGateway } from '../support/gateway.ts';
import { hostedClients, type TurnOptions } from '../support/hosted-clients.ts';
import type { Message } from '../support/http-client.ts';
import { users, usersEnv } from '../support/keepers.ts';
import { clientsFolder, installClients } from './install-clients.ts';
import { keep } from './judge.ts';

beforeAll(installClients);

const chromium = process.env['CHROMIUM'] ?? '/usr/bin/chromium';
const textOf = (messages: readonly Message[] = []): string =>
  messages.find(({ result }) => result !== undefined)?.result.content[0].text ?? '';

const servers = {
  '@playwright/mcp': (folder: string) => [
    join(clientsFolder, 'node_modules/@playwright/mcp/cli.js'),
    ...['--headless', '--isolated', '--no-sandbox', '--executable-path', chromium, '--output-dir', folder],
  ],
  'server-memory': () => [join(clientsFolder, 'node_modules/@modelcontextprotocol/server-memory/dist/index.js')],
};

/** What a user leaves behind, and how it is looked for. */
const steps = {
  '@playwright/mcp': (name: string, page: string) => ({
    leave: { tool: 'browser_navigate', args: { url: `${page}?${name}` } },
    look: { tool: 'browser_evaluate', args: { function: '() => location.search' } },
  }),
  'server-memory': (name: string) => ({
    leave: {
      tool: 'create_entities',
      args: { entities: [{ name: `?${name}`, entityType: 'person', observations: [] }] },
    },
    look: { tool: 'read_graph', args: {} },
  }),
};

describe.each(['@playwright/mcp', 'server-memory'] as const)('%s', (server) => {
  test.each(hostedClients.map((client) => [client.name, client] as const))('%s', async (_, client) => {
    const folder = await mkdtemp(join(tmpdir(), 'gangway-hosted-'));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const pages = createServer((_request, response) => response.end('<title>page</title>'));
    await once(pages.listen(0, '127.0.0.1'), 'listening');
    onTestFinished(() => void pages.close());
    const page = `http://127.0.0.1:${(pages.address() as AddressInfo).port}/`;
    const command = [process.execPath, ...servers[server](folder)];
    const meets = async (url: string, name: string, options: TurnOptions): Promise<boolean> => {
      const { leave, look } = steps[server](name, page);
      await client.turn(url, [leave], options);
      const [seen] = await client.turn(url, [look], options);
      return textOf(seen).includes(`?${name}`);
    };
    const keys = await startGateway({ env: { GANGWAY_SHARE: undefined, ...usersEnv }, command });
    const alice = await meets(keys.url, 'alice', { headers: users.alice });
    const bob = await meets(keys.url, 'bob', { headers: users.bob });
    const local = await startGateway({ env: { GANGWAY_SHARE: undefined }, command });
    const arms = { 'two users with API keys': alice && bob, 'a local user': await meets(local.url, 'local', {}) };
    for (const [arm, isMet] of Object.entries(arms))
      keep({
        ...{ judge: `Hosted clients, the state of ${server} in the second turn`, arm, scenario: client.name },
        ...(isMet ? { passed: 1, failed: [] } : { passed: 0, failed: ['the state is lost'] }),
      });
    expect(arms).toEqual({ 'two users with API keys': true, 'a local user': true });
  });
});
