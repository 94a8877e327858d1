import { expect, test } from 'vitest';
import { root } from '../support/gateway.ts';
import { retryWith } from '../support/input-required.ts';
import { startLocalGateway } from '../support/local-gateway.ts';
import { callModern, metaKeys, postModern } from '../support/modern-client.ts';

const command = [process.execPath, `${root}test/fixtures/rooted-server.mjs`];
const withRoots = { [metaKeys.clientCapabilities]: { roots: {} } };
const roots = [{ uri: 'file:///work', name: 'work' }];
const start = () => startLocalGateway({ command, args: ['--era', 'legacy'], env: { GANGWAY_SHARE: undefined } });

type Answer = Awaited<ReturnType<typeof callModern>>;
const contentOf = ({ json }: Answer) => JSON.parse(json.result.content[0].text);
const answersWith = (list: object[]) => () => ({ roots: list });

async function callWithRoots(url: string): Promise<Answer> {
  const asked = await callModern(url, 'directories', {}, { meta: withRoots });
  if (asked.json.result.resultType !== 'input_required') return asked;
  const [question] = Object.values(asked.json.result.inputRequests);
  expect(question).toMatchObject({ method: 'roots/list' });
  const params = retryWith(asked, answersWith(roots));
  return await callModern(url, 'directories', {}, { meta: withRoots, params });
}

test.each(['nothing', 'tools/list'])(
  '[R4.05] roots of a 2026-07-28 client reach a server that asks right after its start, with %s before the call',
  async (before) => {
    const { url } = await start();
    if (before !== 'nothing') await postModern(url, before, {}, { meta: withRoots });
    const first = contentOf(await callWithRoots(url));
    expect(first).toMatchObject({ roots: ['file:///work'], asked: 1 });
    const again = await callModern(url, 'directories', {}, { meta: withRoots });
    expect(contentOf(again)).toEqual(first);
  },
);

test('a client without roots is not asked', async () => {
  const { url } = await start();
  const { json } = await callModern(url, 'directories');
  expect(json.result).toMatchObject({ isError: true });
});
