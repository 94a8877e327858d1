import { expect, test } from 'vitest';
import { changingFile } from '../support/changing-file.ts';
import { everythingFixture, startGateway } from '../support/gateway.ts';
import { initialize, type Session } from '../support/http-client.ts';
import { serverEntry } from '../support/view-file.ts';
import { waitFor } from '../support/wait-for.ts';

/** Starts a gateway with two servers, a view of both and a view of the second one. */
async function start(requestTotal: string) {
  const textOf = (changes: object): string =>
    JSON.stringify({
      mcpServers: { a: serverEntry(everythingFixture, changes), b: serverEntry(everythingFixture) },
      views: { both: ['a', 'b'], other: ['b'] },
      timeouts: { drain: '1s', requestIdle: '1s', requestTotal },
    });
  const file = await changingFile('gangway.json', textOf({}));
  const gateway = await startGateway({ args: ['--config', file.path] });
  const reloaded = () => gateway.logs().find(({ msg }) => msg === 'reloaded the configuration');
  return {
    open: (view: string) => initialize(`${gateway.baseUrl}/${view}/mcp`),
    /** Hides a tool of the first server. */
    async hideEcho() {
      await file.write(textOf({ denyTools: ['echo'] }));
      await waitFor(() => reloaded() !== undefined, { what: 'the file to be read again' });
      return reloaded();
    },
  };
}

/** Calls a tool, and returns its text or the reason of its refusal. */
async function echo(session: Session, name: string): Promise<string> {
  const { messages } = await session.request('tools/call', { name, arguments: { text: 'x' } });
  const answer = messages.at(-1);
  return answer.error?.data.reason ?? answer.result.content[0].text;
}

test('sessions of a view keep a changed server until their time is up; new ones have the change', async () => {
  const { open, hideEcho } = await start('1h');
  const old = await open('both');
  expect(await hideEcho()).toMatchObject({ added: [], changed: ['a', 'both'], removed: [] });
  expect(await echo(old, 'a__echo')).toBe('x');
  expect(await echo(await open('both'), 'a__echo')).toBe('unknown_tool');
});

test('sessions of a view end when the time of a changed server is up; those of other views go on', async () => {
  const { open, hideEcho } = await start('1s');
  const [old, other] = [await open('both'), await open('other')];
  await hideEcho();
  await waitFor(async () => (await old.request('ping')).status === 404, { what: 'the end of the session' });
  expect(await echo(await open('both'), 'a__echo')).toBe('unknown_tool');
  expect(await echo(other, 'b__echo')).toBe('x');
});
