import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { root } from '../support/gateway.ts';
import { waitFor } from '../support/wait-for.ts';
import { closeBrowser, connectPlayground, openPage, startWatched, type WatchedGateway } from './browser.ts';

/** The operations of the playground, against a server with tools, prompts and resources. */

let watched: WatchedGateway;

beforeAll(async () => {
  watched = await startWatched({ isStoppedWithTest: false });
});

afterAll(async () => {
  await closeBrowser();
  await watched.gateway.stop();
});

async function openPlayground(
  options: Parameters<typeof openPage>[2] = {},
  revision = 'legacy',
  admin = watched.admin,
): Promise<Page> {
  const page = await openPage(admin, 'playground', options);
  await connectPlayground(page, revision);
  return page;
}

/** The playground at a server of the scene, with a revision. */
async function openScene(revision = 'legacy'): Promise<Page> {
  const { admin } = await startWatched({ command: [process.execPath, `${root}test/page/scene-server.mjs`] });
  const page = await openPage(admin, 'playground');
  await connectPlayground(page, revision);
  await page.getByText(/^Connected to scene-healthy 1\.0\.0/).waitFor();
  return page;
}

const choose = (page: Page, name: string): Promise<void> => page.getByRole('button', { name, exact: true }).click();

describe('results', () => {
  test('images and sounds are shown, not written as base64', async () => {
    const page = await openPlayground();
    await choose(page, 'test_image_content');
    await choose(page, 'Call');
    const image = page.getByRole('img', { name: 'Image of the result' });
    await image.waitFor();
    const widthOf = (element: unknown): number => (element as { naturalWidth: number }).naturalWidth;
    await waitFor(async () => (await image.evaluate(widthOf)) > 0, { what: 'the pixels' });
    await choose(page, 'test_audio_content');
    await choose(page, 'Call');
    await page.locator('audio').waitFor();
    expect(await page.getByLabel('Result').textContent()).toMatch(/^audio\/wav, \d+\sB$/);
  });

  test('a failed tool is red, with what it says', async () => {
    const page = await openPlayground();
    await choose(page, 'test_error_handling');
    await choose(page, 'Call');
    await page.getByText(/^The tool failed after/).waitFor();
    await page.getByLabel('Result').getByText('intentionally returns an error').waitFor();
  });
});

test('text, a link, a sound and structured content of one result are all shown, and the link is read', async () => {
  const page = await openScene();
  await choose(page, 'report');
  await choose(page, 'Call');
  const result = page.getByLabel('Result');
  await result.getByText('4 of 5 orders are paid.').waitFor();
  await result.locator('audio').waitFor();
  await result.getByText('Structured content').waitFor();
  expect(await result.getByText('"paid": 4').count()).toBe(1);
  await result.getByText('report://today').waitFor();
  await choose(page, 'Read Report of today');
  await result.getByText('Orders: 5. Paid: 4.').waitFor();
});

test('a tool that is marked as destructive is called only after a confirmation', async () => {
  const page = await openScene();
  await choose(page, 'Delete a file delete_file');
  await page.getByText('destructive', { exact: true }).waitFor();
  await page.getByLabel('path').fill('/tmp/x');
  await choose(page, 'Call');
  const dialog = page.getByRole('dialog', { name: 'Call Delete a file?' });
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await choose(page, 'Call');
  await dialog.getByRole('button', { name: 'Call' }).click();
  await page.getByLabel('Result').getByText('deleted /tmp/x').waitFor();
  expect(await page.getByText('tools/call delete_file').count()).toBe(1);
});

describe('2026-07-28', () => {
  test('tools are called and resources read without a session, and nothing can be cut', async () => {
    const page = await openScene('modern');
    await page.getByText(', revision 2026-07-28.').waitFor();
    await choose(page, 'query');
    await page.getByLabel('text').fill('invoices');
    expect(await page.getByRole('button', { name: 'Cut the connection' }).isVisible()).toBe(false);
    await choose(page, 'Call');
    await page.getByLabel('Result').getByText('3 results for “invoices”').waitFor();
    await choose(page, 'Report of today report://today');
    await choose(page, 'Read');
    await page.getByLabel('Result').getByText('Orders: 5. Paid: 4.').waitFor();
    expect(await page.getByText('initialize', { exact: true }).count()).toBe(0);
  });

  test('a server asks for input by its result, the person answers, and a request is cancelled', async () => {
    const page = await openPlayground({}, 'modern');
    await choose(page, 'test_sampling');
    await page.getByRole('textbox', { name: /^prompt/ }).fill('What is the capital of France?');
    await choose(page, 'Call');
    await page.getByLabel('Answer from the model').fill('Paris');
    await choose(page, 'Answer');
    await page.getByLabel('Result').getByText('LLM response: Paris').waitFor();
    await choose(page, 'progress');
    await page.getByLabel('count').fill('100');
    await page.getByLabel('gapMs').fill('200');
    await choose(page, 'Call');
    await page.getByText('notifications/progress 2 of 100').waitFor();
    await choose(page, 'Cancel the request');
    await page.getByText('You cancelled the request.').waitFor();
  });
});

test.each(['legacy', 'modern'])(
  '%s: a subscription to a resource counts its updates, until it is ended',
  async (revision) => {
    // By default, all requests on this machine share a process, so a subscription sees what another request changes.
    const { admin } = await startWatched({ env: { GANGWAY_SHARE: undefined } });
    const page = await openPlayground({}, revision, admin);
    await choose(page, 'static-text test://static-text');
    await choose(page, 'Subscribe');
    const list = page.getByRole('list', { name: 'Subscriptions' });
    await list.getByText('No update yet').waitFor();
    const update = async (): Promise<void> => {
      await page.getByLabel('uri').fill('test://static-text');
      await choose(page, 'Call');
    };
    await choose(page, 'update_resource');
    await update();
    await list.getByText(/^1 update, the last at \d\d:\d\d:\d\d$/).waitFor();
    await update();
    await list.getByText(/^2 updates, /).waitFor();
    await choose(page, 'Unsubscribe from test://static-text');
    await list.waitFor({ state: 'hidden' });
  },
);

test('the button says what it does: it disconnects until something else is chosen', async () => {
  const page = await openPlayground();
  await page.getByLabel('Token or API key').waitFor({ state: 'hidden' });
  await page.getByRole('button', { name: 'Disconnect' }).click();
  await page.getByText('Disconnected.').waitFor();
  await page.getByRole('button', { name: 'Connect', exact: true }).click();
  await page.getByText(/^Connected to /).waitFor();
  await page.getByLabel('Revision').selectOption('modern');
  await page.getByRole('button', { name: 'Connect', exact: true }).click();
  await page.getByRole('button', { name: 'Disconnect' }).waitFor();
});

test('a token can be entered where the server takes one, although the gateway needs none', async () => {
  const { admin } = await startWatched({
    args: ['--defaults.forwardHeaders', 'Authorization', 'http://127.0.0.1:9/mcp'],
    command: [],
  });
  const page = await openPage(admin, 'playground');
  await page.getByLabel('Token or API key').waitFor();
});

test('the timeline shows the cut, the resume, and that no event is repeated', async () => {
  const page = await openPlayground();
  await choose(page, 'progress');
  await page.getByLabel('count').fill('20');
  await page.getByLabel('gapMs').fill('500');
  await choose(page, 'Call');
  await page.getByText('notifications/progress 2 of 20').waitFor();
  await choose(page, 'Cut the connection');
  await page.getByText(/^Done after/).waitFor();
  const timeline = page.getByRole('img', { name: /^Timeline of the stream\. \d+ events in .*\ss, none repeated: / });
  await timeline.waitFor();
  const text = String(await timeline.getAttribute('aria-label'));
  const [, before, after] = /(\d+) before the cut, (\d+) after the resume\.$/.exec(text) ?? [];
  // 20 progress notifications and the result.
  expect(Number(before) + Number(after)).toBe(21);
  expect(Number(after)).toBeGreaterThan(0);
  const figure = page.locator('.timeline');
  expect(await figure.locator('.timeline-axis span').allTextContents()).toHaveLength(5);
  expect(await figure.locator('.timeline-legend').textContent()).toContain('Not connected');
  expect(await timeline.locator('.span.cut, .span.resuming, .span.resumed').count()).toBeGreaterThanOrEqual(3);
});

test('a gateway that is gone is not called connected, and the request that it did not answer says so', async () => {
  const { admin, gateway } = await startWatched();
  const page = await openPage(admin, 'playground', { expected: 'Failed to load resource' });
  await page.getByText(/^Connected to /).waitFor();
  await choose(page, 'echo');
  await page.getByLabel('text').fill('anybody there?');
  await gateway.stop('SIGKILL');
  await page.getByText('Lost the connection to the gateway.').waitFor();
  await choose(page, 'Call');
  await page.getByText('The gateway does not respond.').waitFor();
  await page
    .locator('.transcript')
    .getByText(/ · no answer$/)
    .waitFor();
});

describe('operations', () => {
  test('tools, prompts and resources are found by a word', async () => {
    const page = await openPlayground();
    await page.getByRole('heading', { name: /^Tools \(\d+\)$/ }).waitFor();
    await page.getByRole('searchbox', { name: 'Find' }).fill('template');
    await page.getByRole('heading', { name: /^Resources \(1 of \d+\)$/ }).waitFor();
    expect(await page.getByRole('button', { name: 'test_simple_prompt', exact: true }).count()).toBe(0);
  });

  test('a prompt is filled in and shown by roles', async () => {
    const page = await openPlayground();
    await choose(page, 'test_prompt_with_arguments');
    await page.getByLabel('arg1').fill('one');
    await page.getByLabel('arg2').fill('two');
    await choose(page, 'Get');
    await page.getByLabel('Result').getByText("Prompt with arguments: arg1='one', arg2='two'").waitFor();
    await page.getByLabel('Result').getByText('user', { exact: true }).waitFor();
  });

  test('a resource is read, and a template is expanded', async () => {
    const page = await openPlayground();
    await choose(page, 'static-text test://static-text');
    await choose(page, 'Read');
    await page.getByLabel('Result').getByText('This is the content of the static text resource.').waitFor();
    await choose(page, 'template test://template/{id}/data');
    await page.getByRole('textbox', { name: /^id\b/ }).fill('a b');
    await choose(page, 'Read');
    await page.getByLabel('Result').getByText('test://template/a%20b/data').first().waitFor();
  });
});

describe('a call', () => {
  test('takes its arguments as JSON as well', async () => {
    const page = await openPlayground();
    await choose(page, 'progress');
    await page.getByLabel('marker').fill('kept');
    await choose(page, 'Edit as JSON');
    const json = page.getByLabel('Arguments as JSON');
    expect(JSON.parse(await json.inputValue())).toEqual({ marker: 'kept' });
    await json.fill('{');
    await choose(page, 'Call');
    await page.getByText('The arguments are not valid JSON').waitFor();
    await json.fill('{"marker":"from JSON"}');
    await choose(page, 'Call');
    await page.getByLabel('Result').getByText('from JSON').waitFor();
    await choose(page, 'Use the form');
    await page.getByLabel('marker').waitFor();
  });

  test('shows its progress, and is cancelled', async () => {
    const page = await openPlayground();
    await choose(page, 'progress');
    await page.getByLabel('count').fill('100');
    await page.getByLabel('gapMs').fill('200');
    await choose(page, 'Call');
    await page.getByText('notifications/progress 2 of 100').waitFor();
    expect(Number(await page.getByLabel('Progress').getAttribute('value'))).toBeGreaterThanOrEqual(2);
    await choose(page, 'Cancel the request');
    await page.getByText('You cancelled the request.').waitFor();
    await page.getByText('notifications/cancelled', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Call', exact: true, disabled: false }).waitFor();
  });

  test('is copied as a command that works, and as code', async () => {
    const page = await openPlayground({ permissions: ['clipboard-read', 'clipboard-write'] });
    await choose(page, 'echo');
    await page.getByLabel('text').fill("it's here");
    await choose(page, 'Copy as curl');
    await page.getByText('Copied.').first().waitFor();
    const command = (await page.evaluate('navigator.clipboard.readText()')) as string;
    const { execFile } = await import('node:child_process');
    const { promisify } = await import('node:util');
    const { stdout } = await promisify(execFile)('sh', ['-c', `${command} -sS`]);
    expect(stdout).toContain("it's here");
    await choose(page, 'Copy as SDK code');
    await waitFor(async () => String(await page.evaluate('navigator.clipboard.readText()')).includes('callTool'), {
      what: 'the code',
    });
  });
});

describe('a request of the server', () => {
  test('for a message of the model is answered by the person', async () => {
    const page = await openPlayground();
    await choose(page, 'test_sampling');
    await page.getByRole('textbox', { name: /^prompt/ }).fill('What is the capital of France?');
    await choose(page, 'Call');
    await page.getByText('user: What is the capital of France?').waitFor();
    await page.getByLabel('Answer from the model').fill('Paris');
    await choose(page, 'Answer');
    await page.getByLabel('Result').getByText('LLM response: Paris').waitFor();
  });

  test('can stay open, below a later one', async () => {
    const page = await openPlayground();
    await choose(page, 'ask_client');
    await page.getByLabel('method').fill('roots/list');
    await choose(page, 'Call');
    const roots = 'The server asks for the roots of the client';
    await page.getByRole('heading', { name: roots }).waitFor();
    await choose(page, 'test_sampling');
    await page.getByRole('textbox', { name: /^prompt/ }).fill('Where?');
    await choose(page, 'Call');
    await page.getByLabel('Answer from the model').waitFor();
    const titles = await page.locator('.asked h2').allTextContents();
    expect(titles).toEqual(['The server asks for a message from the model', roots]);
  });

  test('for roots is answered, and can be refused', async () => {
    const page = await openPlayground();
    await choose(page, 'ask_client');
    await page.getByLabel('method').fill('roots/list');
    await choose(page, 'Call');
    await page.getByLabel('One URI for each line').fill('file:///a\nfile:///b\n');
    await choose(page, 'Answer');
    await page.getByLabel('Result').getByText('{"roots":[{"uri":"file:///a"},{"uri":"file:///b"}]}').waitFor();
    await choose(page, 'Call');
    await choose(page, 'Decline');
    await page.getByText('The user rejected the request').first().waitFor();
  });
});
