import { everythingFixture, startGateway } from '../support/gateway.ts';
import { serverEntry, writeViewFile } from '../support/view-file.ts';
import { scenarios2025, scenarios2026Translated } from './scenarios.ts';
import { testConformance } from './suite-tests.ts';

/** A view of one server that keeps its names: it has to pass what the server passes alone. */
const viewOfOne = {
  name: 'a view of one server',
  ready: async () => {
    const { args, remove } = await writeViewFile(
      { only: serverEntry(everythingFixture) },
      { view: { servers: ['only'], unprefixed: 'only' } },
    );
    return { args, command: [], stop: remove };
  },
};

const start = async ({ args }: { readonly args: readonly string[] }) => {
  const gateway = await startGateway({ args });
  return { url: `${gateway.baseUrl}/view/mcp`, stop: () => gateway.stop() };
};

testConformance('a view', start, scenarios2025, [viewOfOne]);
testConformance('a view', start, scenarios2026Translated, [viewOfOne]);
