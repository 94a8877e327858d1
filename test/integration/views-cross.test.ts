import { clientKinds, modernClients } from '../support/client-kinds.ts';
import { hastyArgs, testCross } from '../support/cross-suite.ts';
import { everythingFixture, modernFixture, startGateway } from '../support/gateway.ts';
import { featuresOfFixture } from '../support/sdk-features.ts';
import { serverEntry, writeViewFile } from '../support/view-file.ts';
import type { ReadyServer, ServerKind } from './server-kinds.ts';

/** A view of these servers. The first one keeps its names, so that the tests of all features can run. */
const viewKind = (name: string, entries: readonly object[], more: Partial<ServerKind> = {}): ServerKind => ({
  name,
  transport: entries.length === 1 ? 'stdio' : 'view',
  features: featuresOfFixture,
  ready: async () => {
    const servers = Object.fromEntries(entries.map((entry, index) => [`s${index}`, entry]));
    const { args, remove } = await writeViewFile(servers, { view: { servers: ['*'], unprefixed: 's0' } });
    return { args, command: [], stop: remove };
  },
  ...more,
});

const start = async ({ args }: Pick<ReadyServer, 'args'>) => {
  const gateway = await startGateway({
    args: [...hastyArgs, '--share', 'all', '--session-idle', '5s', ...args],
  });
  return {
    url: `${gateway.baseUrl}/view/mcp`,
    descendants: () => gateway.descendants(),
    stop: () => gateway.stop(),
  };
};

const fixture = serverEntry(everythingFixture);
const modern = serverEntry([...modernFixture]);

testCross({
  servers: [
    viewKind('a view of one server', [fixture]),
    viewKind('a view of five servers', [fixture, modern, fixture, fixture, modern], { isModern: true }),
  ],
  clients: [...clientKinds, ...modernClients],
  start,
});
