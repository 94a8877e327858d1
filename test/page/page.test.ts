import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { digestOfKey } from '../../src/core/auth/api-keys.ts';
import { everythingFixture, modernFixture } from '../support/gateway.ts';
import { initialize } from '../support/http-client.ts';
import { findFreePort } from '../support/redis-process.ts';
import { statusPageOf } from '../support/status-page.ts';
import { waitFor, withDeadline } from '../support/wait-for.ts';
import { closeBrowser, logIn, openBrowser, openPage, sharedWatched, startWatched } from './browser.ts';

/** The status page in a real browser, in front of a real gateway. */

afterAll(closeBrowser);

const shared = sharedWatched();

/** What has the focus, and whether it can be seen: one that is taller than the room below the header has to begin there. */
const lookAtFocus = `(() => {
  const focused = document.activeElement;
  const header = document.querySelector('.top');
  const { top, bottom, height } = focused.getBoundingClientRect();
  const begin = header.getBoundingClientRect().bottom;
  const isHidden = top < begin || (bottom > innerHeight && height <= innerHeight - begin);
  return { isInHeader: header.contains(focused), isHidden, what: focused.tagName + ' ' + focused.textContent };
})()`;

interface FocusSeen {
  readonly isInHeader: boolean;
  readonly isHidden: boolean;
  readonly what: string;
}

/** A gateway whose clients show keys, one of which is an operator's. */
async function startWithKeys() {
  const [key, operatorKey] = ['a-key-of-alice-with-enough-characters', 'a-key-of-the-operator-with-enough-characters'];
  const folder = mkdtempSync(join(tmpdir(), 'gangway-page-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const scopes = ['gangway:status', 'gangway:sessions', 'gangway:drain'];
  const operator = { name: 'operator', sha256: digestOfKey(operatorKey), scopes };
  writeFileSync(join(folder, 'keys.json'), JSON.stringify([{ name: 'alice', sha256: digestOfKey(key) }, operator]));
  return { key, operatorKey, ...(await startWatched({ args: ['--api-keys-file', join(folder, 'keys.json')] })) };
}

describe('the door', () => {
  test('[S-04] opens by the word of the printed URL, which leaves the address; a reload works, another tab asks', async () => {
    const { admin } = await startWatched();
    expect(admin).toMatch(/\/#[\w-]{43}$/);
    const page = await openPage(admin, 'overview', { expected: '401 (Unauthorized)' });
    expect(page.url()).not.toContain(new URL(admin).hash.slice(1));
    await page.reload();
    await page.getByRole('status').getByText('Live').waitFor();
    const other = await page.context().newPage();
    await other.goto(new URL('/', admin).href);
    await other.getByText('Open the complete URL that the gateway printed').waitFor();
    await other.getByLabel('Code or URL').fill('no-such-word');
    await other.getByRole('button', { name: 'Continue' }).click();
    await other.getByText('This code is not valid.').waitFor();
    await other.goto(admin);
    await other.getByRole('status').getByText('Live').waitFor();
  });

  test('[S-04] asks for a key where clients need one, says what is wrong with it, and keeps it over a reload', async () => {
    const { admin, key, operatorKey } = await startWithKeys();
    expect(new URL(admin).hash).toBe('');
    const context = await (await openBrowser()).newContext();
    onTestFinished(() => context.close());
    const page = await context.newPage();
    await page.goto(admin);
    await page.getByText('An API key with the scope gangway:status is required').waitFor();
    await logIn(page, 'no-such-key');
    await page.getByText('The API key is not valid here, or has expired.').waitFor();
    await logIn(page, key);
    await page.getByText('This action requires an API key with the scope gangway:status.').waitFor();
    await logIn(page, operatorKey);
    await page.getByRole('status').getByText('Live').waitFor();
    await page.getByRole('button', { name: 'Drain…' }).waitFor();
    await page.getByRole('button', { name: /^Restart the processes of/ }).waitFor();
    await page.reload();
    await page.getByRole('status').getByText('Live').waitFor();
  });
});

describe('the overview', () => {
  test('shows the server, its process and what it does, as it happens', async () => {
    const { gateway, admin } = await startWatched();
    const page = await openPage(admin);
    const server = page.getByRole('article', { name: 'everything-server' });
    await server.getByText('stdio').waitFor();
    await server.getByText('no sessions').waitFor();
    await page.getByRole('heading', { name: 'First steps' }).waitFor();
    const session = await initialize(gateway.url);
    for (let call = 0; call < 20; call += 1) await session.callTool('echo', { text: 'hello' });
    await server.getByText('1 session · client raw-test-client').waitFor();
    await page.getByRole('heading', { name: 'First steps' }).waitFor({ state: 'hidden' });
    await server.getByText(/^1 process, /).waitFor();
    await server.getByText(/^pid \d+/).waitFor();
    const short = gateway.logs().find(({ msg }) => msg === 'session started')?.['session'] as string;
    await page.getByText(`everything-server · ${short}`).waitFor();
    await server.getByRole('img', { name: /Calls per second\. .* maximum [1-9]/ }).waitFor();
    await server.getByRole('img', { name: /Response time\. Median: last 2 min \d/ }).waitFor();
    await page.getByRole('img', { name: /Sessions and streams\. Sessions: now 1/ }).waitFor();
    await page.getByLabel('Range').selectOption('1 hour');
    await page.getByRole('img', { name: /Memory\. Gateway: now [\d.]+\sMiB/ }).waitFor();
  });

  test('says why a server fails, and what it wrote to stderr last', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'gangway-page-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const script = 'console.error("no such database, password=hunter2"); process.exit(3)';
    const [command, ...args] = everythingFixture;
    // A gateway with one server would end with that server.
    const mcpServers = { broken: { command, args: ['-e', script] }, everything: { command, args } };
    writeFileSync(join(folder, 'gangway.json'), JSON.stringify({ mcpServers }));
    const { admin, gateway } = await startWatched({ command: [], args: ['--config', join(folder, 'gangway.json')] });
    const page = await openPage(admin, 'overview', { expected: '502 (Bad Gateway)' });
    await fetch(`${gateway.baseUrl}/broken/mcp`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}',
    });
    const server = page.getByRole('article', { name: 'broken' });
    await server.getByText('Down', { exact: true }).waitFor();
    await server
      .getByText(/exit.* 3/)
      .first()
      .waitFor();
    await server.locator('summary').getByText('no such database').waitFor();
    await server.getByLabel('Last lines of stderr').getByText('no such database').waitFor();
    await server.getByRole('heading', { name: 'broken' }).click();
    await server.getByLabel('Last lines of stderr').waitFor({ state: 'hidden' });
    await server.locator('summary').getByText('no such database').waitFor();
    await page.evaluate('location.hash = "playground/broken"');
    await page.getByRole('button', { name: 'Connect' }).click();
    await page.getByText(/^broken: .*exit.* 3/).waitFor();
    await page.getByLabel('Last lines of the server').getByText('no such database').waitFor();
    await page.getByRole('link', { name: 'Show the server on the overview' }).click();
    await server.locator('summary').getByText('no such database').waitFor();
    await page.getByRole('button', { name: 'Restart the processes of broken' }).click();
    const nothing = page.getByRole('dialog', { name: 'No process of broken runs' });
    await nothing.getByRole('button', { name: 'Check' }).click();
    await page.getByText(/^Failed broken: /).waitFor();
  });

  test('says where a server that nobody can reach should be, and /readyz does not', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'gangway-page-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const [command, ...args] = everythingFixture;
    const url = `http://127.0.0.1:${await findFreePort()}/mcp`;
    const mcpServers = { away: { url }, everything: { command, args } };
    writeFileSync(join(folder, 'gangway.json'), JSON.stringify({ mcpServers }));
    const { admin, gateway } = await startWatched({ command: [], args: ['--config', join(folder, 'gangway.json')] });
    const page = await openPage(admin, 'playground/away', { expected: '502 (Bad Gateway)' });
    await page.getByText(`away: ${new URL(url).origin} refused the connection`).waitFor();
    await page.evaluate('location.hash = "overview"');
    const server = page.getByRole('article', { name: 'away' });
    await server.getByText(/refused the connection: nothing listens there/).waitFor();
    const ready = await (await fetch(`${gateway.baseUrl}/readyz`)).text();
    expect(ready).toContain('could not be reached, or refused access');
    expect(ready).not.toContain(new URL(url).host);
  });

  test('says without a click which tool fails, who is refused, where sessions are kept, and whether memory grows', async () => {
    const { admin, gateway } = await startWatched();
    const page = await openPage(admin);
    const figure = (name: string) => page.locator('.figures > div').filter({ hasText: name });
    await figure('Refused requests').getByText('none since the start').waitFor();
    const session = await initialize(gateway.url);
    await session.request('tools/list'); // the page names only tools that their server has listed
    for (let call = 0; call < 3; call += 1) await session.callTool('test_error_handling', {});
    await figure('Failed calls').getByText('most: test_error_handling of everything-server').waitFor();
    await page.getByText(/^3 of \d+ calls failed in the last 2 min .*, most of test_error_handling\.$/).waitFor();
    const refused = await fetch(gateway.url, {
      method: 'POST',
      headers: { origin: 'https://evil.example' },
      body: '{}',
    });
    expect(refused.status).toBe(403);
    await figure('Refused requests').getByText('1 × wrong origin').waitFor();
    await figure('Refused requests')
      .getByText(/Last at .* from 127\.0\.0\.1 at everything-server \(Origin: https:\/\/evil\.example\)/)
      .waitFor();
    await figure('Store').getByText('In memory').waitFor();
    await figure('Memory').getByText('growth not known yet').waitFor();
    await figure('Lost processes').getByText('nothing restarted').waitFor();
    process.kill(JSON.parse((await session.callTool('describe_process', {})).content[0].text).pid, 'SIGKILL');
    await figure('Lost processes').getByText('in 5 min: everything-server 1').waitFor();
  });

  test('drains the instance when it is asked twice', async () => {
    const { admin, gateway } = await startWatched();
    const page = await openPage(admin, 'overview', { expected: 'net::ERR' });
    const session = await initialize(gateway.url);
    expect(session.id).toBeDefined();
    await page.getByText('1 session · client raw-test-client').waitFor();
    await page.getByRole('button', { name: 'Drain…' }).click();
    await page.getByText('There is no other instance. Its session ends, and its client opens a new one.').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Drain…' }).click();
    await page.getByRole('button', { name: 'Drain and exit' }).click();
    await page.getByText('accepts no new sessions and exits').first().waitFor();
    expect(await withDeadline(gateway.exited, { what: 'the end of the gateway' })).toEqual({ code: 0, signal: null });
    await page.getByText('Not connected').waitFor();
    await page
      .getByRole('alert')
      .getByText(/^Drained from this page at [\d:]+, the gateway has exited\./)
      .waitFor();
  });

  test('restarts the backends of a server: its session goes on with another process', async () => {
    const { admin, gateway } = await startWatched();
    const session = await initialize(gateway.url);
    const pidOf = async (): Promise<number> =>
      JSON.parse((await session.callTool('describe_process', {})).content[0].text).pid;
    const before = await pidOf();
    const page = await openPage(admin);
    await page.getByRole('button', { name: 'Restart the processes of everything-server' }).click();
    await page.getByRole('button', { name: 'Restart', exact: true }).click();
    await page.getByText('Restarting processes of everything-server: 1.').waitFor();
    await page.getByText('Server restored').waitFor();
    expect(await pidOf()).not.toBe(before);
  });
});

test('each figure leads to its details, and ids of sessions are links', async () => {
  const { admin, gateway } = await startWatched();
  await initialize(gateway.url);
  const page = await openPage(admin);
  const figures = page.locator('.figures');
  await figures.getByRole('link', { name: 'Lost processes' }).click();
  const activity = page.getByRole('region', { name: 'Activity' });
  await page.locator('#happenings-title:focus').waitFor();
  expect(await activity.getByLabel('Show').inputValue()).toBe('restarts');
  expect(await activity.getByRole('listitem').count()).toBe(0);
  await figures.getByRole('link', { name: 'Memory' }).click();
  await page.locator('#charts-title:focus').waitFor();
  await activity.getByLabel('Show').selectOption('Sessions');
  // The same link works again, after a person has changed the choice.
  await figures.getByRole('link', { name: 'Lost processes' }).click();
  await activity.getByRole('listitem').waitFor({ state: 'detached' });
  await activity.getByLabel('Show').selectOption('Sessions');
  await activity.getByRole('link').click();
  await page.getByRole('heading', { name: /^Session [\w-]{8}$/ }).waitFor();
  await page.getByText(/ · protocol 2025-11-25 · /).waitFor();
});

test('a search says what it finds while a person types, and does not stay when it is over', async () => {
  const { admin, gateway } = await startWatched();
  for (let count = 0; count < 2; count += 1) await initialize(gateway.url);
  const page = await openPage(admin);
  const find = page.getByRole('searchbox', { name: 'Find a session' });
  await find.fill('no such session');
  await page.getByText('0 found: press Enter to list them').waitFor();
  await find.press('Enter');
  await page.getByText('No session matches. Change the search or the other choices.').waitFor();
  expect(await page.evaluate('location.hash')).toBe('#sessions/no%20such%20session');
  await page.getByRole('navigation').getByRole('link', { name: 'Sessions' }).click();
  await page.getByText('2 sessions on this instance').waitFor();
  expect(await page.getByRole('searchbox', { name: 'Search' }).inputValue()).toBe('');
  await page.getByRole('searchbox', { name: 'Search' }).fill('raw-test');
  await page.waitForURL(/#sessions\/raw-test$/);
  await page.getByRole('rowheader').getByRole('link').first().click();
  await page.getByRole('link', { name: 'Close' }).click();
  await page.waitForURL(/#sessions\/raw-test$/);
  expect(await page.getByRole('searchbox', { name: 'Search' }).inputValue()).toBe('raw-test');
  await page.getByRole('navigation').getByRole('link', { name: 'Overview' }).click();
  expect(await find.inputValue()).toBe('');
});

describe('sessions', () => {
  test('are found, watched without contents, and ended', async () => {
    const { admin, gateway } = await startWatched();
    const [session, other] = [await initialize(gateway.url), await initialize(gateway.url)];
    const [short, otherShort] = gateway
      .logs()
      .filter(({ msg }) => msg === 'session started')
      .map(({ session: name }) => name as string) as [string, string];
    const page = await openPage(admin, 'sessions');
    await page.getByText('2 sessions on this instance').waitFor();
    await page.getByLabel('Search').fill(short);
    await page.getByText('1 of 2 sessions found').waitFor();
    expect(await page.getByRole('link', { name: otherShort }).count()).toBe(0);
    await page.getByRole('cell', { name: 'everything-server' }).click();
    await page.getByRole('heading', { name: `Session ${short}` }).waitFor();
    await session.callTool('echo', { text: 'canary-content' });
    await page.getByText(/^\d+\sB → \d+\sB · .* · ok$/).waitFor();
    await page.getByText('tools/call', { exact: true }).waitFor();
    await page.locator('.flow').getByText('echo', { exact: true }).waitFor();
    await session.callTool('test_error_handling', {});
    await page.getByText(/ · failed$/).waitFor();
    await page.getByLabel('Failed only').check();
    await page.locator('.flow').getByText('echo', { exact: true }).waitFor({ state: 'detached' });
    await page.getByLabel('Failed only').uncheck();
    await page.getByRole('button', { name: 'Pause' }).click();
    await session.callTool('progress', { count: 3 });
    await page.getByLabel('Filter messages').fill('progress');
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByText(/^\d+\sB → /).waitFor();
    await page.locator('.flow').getByText('echo', { exact: true }).waitFor({ state: 'detached' });
    expect(await page.content()).not.toContain('canary-content');
    expect(await page.content()).not.toContain(session.id);
    await page.getByRole('button', { name: 'End session…' }).click();
    await page.getByRole('button', { name: 'End session', exact: true }).click();
    await page.getByText(`Session ${short} has ended.`).waitFor();
    await page.getByText('0 of 1 session found').waitFor();
    await page.getByText('everything-server · has ended').waitFor();
    expect(await page.getByRole('button', { name: 'End session…' }).count()).toBe(0);
    expect((await session.send(JSON.stringify({ jsonrpc: '2.0', id: 9, method: 'ping' }))).status).toBe(404);
    // A slow answer is a stream.
    expect((await other.request('ping')).messages.at(-1)?.result).toEqual({});
    expect(gateway.logs().find(({ msg }) => msg === 'action on the status page')).toMatchObject({
      action: 'end-session',
      session: short,
    });
  });

  test('that hibernate are marked, and found by that, until they are used again', async () => {
    const { admin, gateway } = await startWatched({ args: ['--defaults.hibernateAfter', '300ms'] });
    const session = await initialize(gateway.url);
    const page = await openPage(admin, 'sessions');
    await page.getByRole('rowheader').getByText('hibernating').waitFor();
    await page.getByLabel('Search').fill('hibernating');
    await page.getByText('1 session on this instance').waitFor();
    await page.getByRole('rowheader').getByRole('link').click();
    await page.getByText('hibernating, without a process').waitFor();
    // What is awake is not found.
    const call = session.callTool('slow', { ms: 3_000 });
    await page.getByText('0 of 1 session found').waitFor();
    await page.getByText(/started .* · pid \d+/).waitFor();
    await call;
  });

  test('can be ended in the list on a phone', async () => {
    const viewport = { width: 375, height: 812 };
    const { admin, gateway } = await startWatched();
    await initialize(gateway.url);
    const page = await openPage(admin, 'sessions', { viewport, hasTouch: true });
    const button = page.getByRole('button', { name: /^End session / });
    const box = await button.boundingBox();
    if (box === null) throw new Error('it is not shown');
    expect(box.x).toBeGreaterThanOrEqual(0);
    expect(box.x + box.width).toBeLessThanOrEqual(viewport.width); // without scrolling the table
    expect(Math.min(box.width, box.height)).toBeGreaterThanOrEqual(24); // WCAG 2.2, 2.5.8
    await button.tap();
    await page.getByRole('button', { name: 'End session', exact: true }).tap();
    await page.getByText('0 sessions on this instance').waitFor();
  });

  test('show contents with --observe.showContents, and no credential', async () => {
    const { admin, gateway } = await startWatched({ args: ['--observe.showContents'] });
    const session = await initialize(gateway.url);
    const page = await openPage(admin, 'sessions');
    await page.getByRole('rowheader').getByRole('link').click();
    await page.getByText('New messages appear here').waitFor();
    await session.callTool('echo', { text: 'visible-content', password: 'hunter2' });
    await page.getByText('Content', { exact: true }).first().click();
    await page.getByText('visible-content').first().waitFor();
    expect(await page.content()).not.toContain('hunter2');
  });
});

describe('the playground', () => {
  test('calls a tool, is cut off, and resumes without a loss', async () => {
    const { admin, gateway } = await startWatched({ args: ['--sse.reconnectDelay', '300ms'] });
    const page = await openPage(admin, 'playground');
    await page.getByText(/^Connected to /).waitFor();
    await page.getByRole('button', { name: 'progress', exact: true }).click();
    await page.getByLabel('count').fill('24');
    await page.getByLabel('gapMs').fill('500');
    await page.getByLabel('marker').fill('all-there');
    await page.getByRole('button', { name: 'Call', exact: true }).click();
    await page.getByText('notifications/progress 3 of 24').waitFor();
    await page.getByRole('button', { name: 'Cut the connection' }).click();
    await page.getByText('You cut the connection').waitFor();
    await page.getByText(/^Resuming with Last-Event-ID: \d+\./).waitFor();
    await page.getByText(/^Done after/).waitFor();
    expect(await page.getByLabel('Result').textContent()).toBe('all-there');
    const steps = await page.getByText(/notifications\/progress \d+ of 24/).allTextContents();
    expect(steps.map((text) => Number(/(\d+) of/.exec(text)?.[1]))).toEqual(
      Array.from({ length: 24 }, (_, index) => index + 1),
    );
    expect(gateway.logs().filter(({ msg }) => msg === 'session ended')).toEqual([]);
    await page.getByRole('navigation').getByRole('link', { name: 'Overview' }).click();
    await page.getByText('Stream resumed').waitFor();
  });

  test('answers what the server asks, from a form made of its schema', async () => {
    const { admin } = await shared();
    const page = await openPage(admin, 'playground');
    await page.getByRole('button', { name: 'test_elicitation_sep1034_defaults' }).click();
    await page.getByRole('button', { name: 'Call', exact: true }).click();
    await page.getByRole('heading', { name: 'The server requests input' }).waitFor();
    await page.getByLabel('name', { exact: true }).fill('Ada');
    await page.getByLabel(/^age\b/).fill('36');
    await page.getByLabel('status').selectOption('pending');
    await page.getByRole('button', { name: 'Answer', exact: true }).click();
    const result = page.getByLabel('Result');
    await result.waitFor();
    expect(JSON.parse((await result.textContent())?.split('content=')[1] as string)).toEqual({
      ...{ name: 'Ada', age: 36, score: 95.5, status: 'pending', verified: true },
    });
    await page.getByRole('button', { name: 'test_elicitation_sep1330_enums' }).click();
    await page.getByRole('button', { name: 'Call', exact: true }).click();
    await page.getByLabel('titledSingle', { exact: true }).selectOption({ label: 'Second Option' });
    await page.getByLabel('option1').check();
    await page.getByLabel('Third Choice').check();
    await page.getByRole('button', { name: 'Decline' }).click();
    await page.getByLabel('Result').getByText('action=decline').waitFor();
  });

  test('says what is wrong with an argument, and shows the error of a tool', async () => {
    const { admin } = await shared();
    const page = await openPage(admin, 'playground');
    await page.getByRole('button', { name: 'ask_client' }).click();
    await page.getByLabel('params').fill('{');
    await page.getByRole('button', { name: 'Call', exact: true }).click();
    await page.getByText('params is not valid JSON').waitFor();
    await page.getByLabel('method').fill('no/such_method');
    await page.getByLabel('params').fill('{}');
    await page.getByRole('button', { name: 'Call', exact: true }).click();
    await page.getByText('Method not found').first().waitFor();
  });

  test('is let in with the key of the page or of a user, and not with a wrong one', async () => {
    const { admin, key, operatorKey } = await startWithKeys();
    const page = await openPage(admin, 'playground', { expected: '401 (Unauthorized)', key: operatorKey });
    await page.getByText(/^Connected to /).waitFor();
    await page.getByLabel('Token or API key').fill('no-such-key');
    await page.getByRole('button', { name: 'Connect', exact: true }).click();
    await page.getByText(/^Not connected: /).waitFor();
    await page.getByLabel('Token or API key').fill(key);
    await page.getByRole('button', { name: 'Connect', exact: true }).click();
    await page.getByText(/^Connected to /).waitFor();
  });

  test('is logged as any client is, and by where it is', async () => {
    const { admin, gateway } = await startWatched({ args: ['--log-level', 'info,http=debug'] });
    const page = await openPage(admin);
    const answered = page.waitForResponse((response) => response.status() === 202);
    await page.evaluate("location.hash = 'playground'");
    await page.getByText(/^Connected to /).waitFor();
    const requestId = (await answered).headers()['x-request-id'];
    expect(gateway.logs().find((line) => line['requestId'] === requestId)).toMatchObject({
      ...{ part: 'http', msg: 'request', from: 'playground', method: 'POST', path: '/mcp', status: 202 },
    });
    const session = await initialize(gateway.url);
    await session.request('ping');
    const lines = gateway.logs().filter(({ msg, from }) => msg === 'request' && from === undefined);
    expect(lines.length).toBeGreaterThan(0);
  });

  test('hears what the server says beside its answers, and that its session is over', async () => {
    const { admin } = await startWatched({ args: ['--sse.reconnectDelay', '300ms'] });
    const page = await openPage(admin, 'playground', { expected: '404 (Not Found)' });
    await page.getByText(/^Connected to /).waitFor();
    await page.getByRole('button', { name: 'later', exact: true }).click();
    await page.getByLabel('notification').fill('{"method":"notifications/tools/list_changed"}');
    await page.getByRole('button', { name: 'Call', exact: true }).click();
    await page.getByText('notifications/tools/list_changed', { exact: true }).waitFor();
    await page.getByRole('navigation').getByRole('link', { name: 'Sessions' }).click();
    await page.getByRole('button', { name: /^End session / }).click();
    await page.getByRole('button', { name: 'End session', exact: true }).click();
    await page.getByRole('navigation').getByRole('link', { name: 'Playground' }).click();
    await page.getByRole('status').getByText('The session has ended. Press Connect to start another one.').waitFor();
    await page.getByRole('button', { name: 'Connect', exact: true }).click();
    await page.getByText(/^Connected to /).waitFor();
  });

  test('leaves no session behind when its page is gone', async () => {
    const { admin, gateway } = await startWatched({ args: ['--sse.reconnectDelay', '300ms'] });
    const page = await openPage(admin, 'playground');
    const other = await initialize(gateway.url);
    await page.getByText(/^Connected to /).waitFor();
    await page.context().close();
    const ended = () => gateway.logs().filter(({ msg }) => msg === 'session ended');
    await waitFor(() => ended().length > 0, { deadlineMs: 20_000, what: 'the end of the session' });
    expect(ended()).toEqual([expect.objectContaining({ reason: 'client_gone' })]);
    expect((await other.request('ping')).json.result).toEqual({});
  });

  test('speaks to a server of the modern era as well', async () => {
    const { admin } = await startWatched({ command: modernFixture });
    const page = await openPage(admin, 'playground');
    await page.getByText(/^Connected to /).waitFor();
    await page.getByRole('button', { name: 'echo', exact: true }).click();
    await page.getByLabel('text').fill('over there');
    await page.getByRole('button', { name: 'Call', exact: true }).click();
    await page.getByLabel('Result').getByText('over there').waitFor();
  });
});

describe('the page', () => {
  test('has snippets that are copied with the URL that clients use', async () => {
    const { admin, gateway } = await shared();
    const page = await openPage(admin, 'connect', { permissions: ['clipboard-read', 'clipboard-write'] });
    await page.getByRole('button', { name: 'Copy for Claude Code' }).click();
    await page.getByText('Copied for Claude Code.').waitFor();
    const copied = () => page.evaluate('navigator.clipboard.readText()');
    expect(await copied()).toBe(`claude mcp add --transport http everything-server ${gateway.url}`);
    await page.getByLabel('URL for clients').fill('https://mcp.example.com/mcp');
    await page.getByRole('button', { name: 'Copy for Cursor' }).click();
    await page.getByText('Copied for Cursor.').waitFor();
    expect(JSON.parse((await copied()) as string)).toEqual({
      mcpServers: { 'everything-server': { url: 'https://mcp.example.com/mcp' } },
    });
  });

  test('can be used with the keyboard alone', async () => {
    const { admin } = await shared();
    const page = await openPage(admin);
    await page.getByRole('link', { name: 'Skip to content' }).focus();
    await page.keyboard.press('Enter');
    expect(await page.evaluate('document.activeElement.id')).toBe('content');
    await page.getByRole('navigation').getByRole('link', { name: 'Playground' }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Playground' }).waitFor();
    expect(await page.evaluate('document.activeElement.id')).toBe('playground-title');
    await page.getByText(/^Connected to /).waitFor();
    await page.getByRole('button', { name: 'Disconnect' }).focus();
    await page.keyboard.press('Enter');
    await page.getByText('Disconnected.').waitFor();
  });

  test.each([
    { width: 375, height: 480 },
    { width: 1280, height: 480 },
  ])('shows what has the focus in the playground, and not under the header, at $width', async (viewport) => {
    const { admin } = await shared();
    const page = await openPage(admin, 'playground', { viewport });
    await page.getByRole('button', { name: 'test_elicitation_sep1330_enums' }).click();
    await page.getByRole('button', { name: 'Call', exact: true }).click();
    await page.getByRole('heading', { name: 'The server requests input' }).waitFor();
    // From below, as a person goes back in a form: what is above comes into sight at the upper edge.
    await page.getByRole('link', { name: 'Health' }).focus();
    const seen: string[] = [];
    for (;;) {
      await page.keyboard.press('Shift+Tab');
      const { isInHeader, isHidden, what } = (await page.evaluate(lookAtFocus)) as FocusSeen;
      if (isInHeader) break;
      expect(isHidden, what).toBe(false);
      seen.push(what);
    }
    expect(seen.length).toBeGreaterThan(20);
  });

  test('changes its colours when it is told to, and remembers that', async () => {
    const { admin } = await shared();
    const page = await openPage(admin, 'overview', { colorScheme: 'light' });
    const ground = () => page.evaluate('getComputedStyle(document.documentElement).backgroundColor');
    const light = await ground();
    await page.getByRole('button', { name: /^Colours: auto/ }).click();
    expect(await ground()).toBe(light);
    await page.getByRole('button', { name: /^Colours: light/ }).click();
    expect(await ground()).not.toBe(light);
    await page.reload();
    await page.getByRole('button', { name: /^Colours: dark/ }).waitFor();
    expect(await ground()).not.toBe(light);
  });

  test('comes back by itself when its gateway does', async () => {
    const { admin, gateway, restart } = await startWatched();
    const page = await openPage(admin, 'overview', { expected: 'Failed to load resource' });
    await gateway.stop('SIGKILL');
    await page.getByText('Not connected').waitFor();
    await page
      .locator('.figures')
      .getByText(/^No connection since \d\d:\d\d:\d\d$/)
      .waitFor();
    await page.getByRole('alert').getByText('This page shows what was known then.').waitFor();
    expect(await page.getByText('Ready', { exact: true }).count()).toBe(0);
    // Another start has another word; the page asks for it, and goes on where it was.
    const again = await restart();
    await page.getByText('This code is not valid.').waitFor();
    await page.getByLabel('Code or URL').fill(statusPageOf(again).href);
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByRole('status').getByText('Live').waitFor();
    await page.getByText('Ready', { exact: true }).waitFor();
    expect(await page.getByLabel('Code or URL').count()).toBe(0);
  });

  test('shows names and messages of servers as text, whatever they are', async () => {
    const script = '<img src=x onerror="document.title=1">';
    const { admin } = await startWatched({ command: [...everythingFixture, script] });
    const page = await openPage(admin, 'playground');
    await page.getByRole('button', { name: 'echo', exact: true }).click();
    await page.getByLabel('text').fill(script);
    await page.getByRole('button', { name: 'Call', exact: true }).click();
    await page.getByLabel('Result').getByText(script).waitFor();
    expect(await page.locator('img').count()).toBe(0);
  });
});
