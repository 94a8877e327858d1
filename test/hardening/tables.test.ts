import { expect, test } from 'vitest';
import { rssMiB } from '../fault/memory.ts';
import { openAnswered } from '../support/answered-session.ts';
import { everythingFixture, startGateway } from '../support/gateway.ts';
import { serverEntry, writeViewFile } from '../support/view-file.ts';

/** What a request of the largest size is filled with. */
const padding = 'x'.repeat(3.9 * 1024 * 1024);
const requests = 40;

test.each(['a', 'view'])(
  '[S-21] the memory returns after %s got 40 subscriptions of 3.9 MiB each',
  async (endpoint) => {
    const { args } = await writeViewFile(
      { a: serverEntry(everythingFixture), b: serverEntry(everythingFixture) },
      { view: ['a', 'b'] },
    );
    const gateway = await startGateway({ args });
    const session = await openAnswered(`${gateway.baseUrl}/${endpoint}/mcp`);
    await session.request('resources/subscribe', { uri: 'test://warm', _meta: { padding } });
    const before = rssMiB(gateway.pid);
    for (let index = 0; index < requests; index += 1)
      await session.request('resources/subscribe', { uri: `test://${index}`, _meta: { padding } });
    // Kept once, they would be 156 MiB.
    expect(rssMiB(gateway.pid) - before).toBeLessThan(100);
  },
);
