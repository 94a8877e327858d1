import { existsSync } from 'node:fs';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { afterAll, expect, onTestFinished } from 'vitest';
import { everythingFixture, type Gateway, type GatewayOptions, startGateway } from '../support/gateway.ts';
import { findFreePort } from '../support/redis-process.ts';
import { statusPageOf } from '../support/status-page.ts';

/** The one that CHROMIUM names, or Debian's, of which the shell without windows takes half the processor time. */
const executablePath =
  process.env['CHROMIUM'] ??
  ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium'].find((path) => existsSync(path)) ??
  'chromium';

const flags = [
  ...['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'],
  ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
  // A process for all pages takes a seventh less of the processor time.
  ...['--in-process-gpu', '--renderer-process-limit=1', '--disable-site-isolation-trials'],
];

let browser: Promise<Browser> | undefined;

/** The browser of a test file; every page has a context of its own. */
export function openBrowser(): Promise<Browser> {
  browser ??= chromium.launch({ executablePath, args: flags });
  return browser;
}

export async function closeBrowser(): Promise<void> {
  await (await browser)?.close();
  browser = undefined;
}

/** A gateway with its port for operators. */
export interface WatchedGateway {
  readonly gateway: Gateway;
  /** `http://127.0.0.1:<port>/#<word>`, without the word where a key is asked for. */
  readonly admin: string;
  /** Starts it again, at the same port for operators. */
  restart(): Promise<Gateway>;
}

/** A gateway in front of the everything server for several tests, which ends after the last one of this suite. */
export function sharedWatched(): () => Promise<WatchedGateway> {
  let started: Promise<WatchedGateway> | undefined;
  afterAll(async () => {
    await (await started)?.gateway.stop();
  });
  return () => {
    started ??= startWatched({ isStoppedWithTest: false });
    return started;
  };
}

/** How a page is opened. */
export interface PageOptions extends BrowserContextOptions {
  /** What a browser reports as an error of the page, and is what the test is about: a gateway that is away, a 401. */
  readonly expected?: string;
  /** An operator's key, for the form that asks for it. */
  readonly key?: string;
}

export async function startWatched({
  args = [],
  command = everythingFixture,
  ...options
}: GatewayOptions = {}): Promise<WatchedGateway> {
  const adminPort = await findFreePort();
  const restart = () => startGateway({ ...options, command, adminPort, args });
  const gateway = await restart();
  return { gateway, admin: statusPageOf(gateway).href, restart };
}

/**
 * Opens a view of the status page. When the test has finished, the page must have asked nobody but its gateway, and have had
 * no error.
 */
export async function openPage(
  admin: string,
  view = 'overview',
  { expected, key, ...options }: PageOptions = {},
): Promise<Page> {
  const context = await (await openBrowser()).newContext({ viewport: { width: 1280, height: 900 }, ...options });
  context.setDefaultTimeout(60_000);
  const page = await context.newPage();
  const faults: string[] = [];
  page.on('pageerror', (error) => faults.push(String(error)));
  page.on('console', (message) => {
    const isExpected = expected !== undefined && message.text().includes(expected);
    if (['error', 'warning'].includes(message.type()) && !isExpected) faults.push(message.text());
  });
  page.on('request', (request) => {
    if (new URL(request.url()).origin !== new URL(admin).origin) faults.push(`asked ${request.url()}`);
  });
  onTestFinished(async () => {
    await context.close();
    expect(faults).toEqual([]);
  });
  await page.goto(admin);
  if (key !== undefined) await logIn(page, key);
  await page.getByRole('status').getByText('Live').waitFor();
  await page.evaluate(`location.hash = ${JSON.stringify(view)}`);
  return page;
}

/** Shows the key that the page asks for. */
export async function logIn(page: Page, key: string): Promise<void> {
  await page.getByLabel('API key').fill(key);
  await page.getByRole('button', { name: 'Continue' }).click();
}

/** Waits for the playground, which connects by itself with a session, and connects it with another revision. */
export async function connectPlayground(page: Page, revision = 'legacy'): Promise<void> {
  const status = page.getByText(/^Connected to /);
  await status.waitFor();
  if ((await page.getByLabel('Revision').inputValue()) === revision) return;
  await page.getByLabel('Revision').selectOption(revision);
  await page.getByRole('button', { name: 'Connect', exact: true }).click();
  await page.getByRole('button', { name: 'Disconnect' }).waitFor();
  await status.waitFor();
}
