import { Agent } from 'node:http';
import { expect, test } from 'vitest';
import { everythingFixture, startGateway } from '../support/gateway.ts';
import { retryWith } from '../support/input-required.ts';
import { callModern, metaKeys, openModern } from '../support/modern-client.ts';

const asking = { [metaKeys.clientCapabilities]: { elicitation: {} } };
const textOf = ({ json }: Awaited<ReturnType<typeof callModern>>): string => json.result.content[0].text;

test('[P2] [P8] 1,000 clients with the same ids and tokens, half of them asked: each hears what is its own', async () => {
  const gateway = await startGateway({
    command: everythingFixture,
    args: ['--era', 'legacy', '--share', 'all', '--defaults.poolMax', '4'],
  });
  await using agent = Object.assign(new Agent({ keepAlive: true }), {
    [Symbol.asyncDispose]: async () => agent.destroy(),
  });
  const one = async (n: number): Promise<string> => {
    const of = { id: 1, agent };
    if (n % 2 === 0) {
      const meta = { progressToken: 1 };
      const exchange = await openModern(
        gateway.url,
        'tools/call',
        { name: 'progress', arguments: { count: 2, gapMs: 0, marker: `m${n}` } },
        { ...of, meta },
      );
      const { messages } = await exchange.answer();
      const markers = messages.flatMap(({ params }) => (params === undefined ? [] : [params.message]));
      expect(markers).toEqual([`m${n}`, `m${n}`]);
      return messages.at(-1)?.result.content[0].text;
    }
    const args = { message: `m${n}` };
    const asked = await callModern(gateway.url, 'test_elicitation', args, { ...of, meta: asking });
    const params = retryWith(asked, ({ params }) => ({
      action: 'accept',
      content: { username: String(params?.['message']), email: '' },
    }));
    const text = textOf(await callModern(gateway.url, 'test_elicitation', args, { ...of, meta: asking, params }));
    return /"username":"(m\d+)"/.exec(text)?.[1] ?? text;
  };
  const texts = await Promise.all(Array.from({ length: 1_000 }, (_, n) => one(n)));
  expect(texts).toEqual(Array.from({ length: 1_000 }, (_, n) => `m${n}`));
  // `poolMax` processes for those who declare nothing, and as many for the others.
  expect((await gateway.descendants()).length).toBeLessThanOrEqual(2 * 4);
});
