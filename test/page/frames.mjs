// Counts the frames of the status page in a real Chromium: npm run build && node test/page/frames.mjs [--sessions 500] [--rate 100] [--seconds 10]
// The gateway has many sessions, and one client calls a tool `rate` times a second: a request and a result each, so twice as many messages.
// Fails below 50 frames a second in any view. The processor time of the page depends less on the load of the machine than its frames.
// Run it on a quiet machine: Chromium, the gateway and the clients share its cores.
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { chromium } from 'playwright-core';
import { startScene } from './scene.mjs';

const leastFrames = 50;
const { values } = parseArgs({
  options: { sessions: { type: 'string' }, rate: { type: 'string' }, seconds: { type: 'string' } },
});
const [sessions, rate, seconds] = [values.sessions ?? '500', values.rate ?? '100', values.seconds ?? '10'].map(Number);
const print = (text) => process.stdout.write(`${text}\n`);

/** Opens a session, and calls a tool in it `rate` times a second, at most 50 at once, until stopped. */
async function keepCalling({ port, keyOf }) {
  const headers = {
    authorization: `Bearer ${keyOf('alice')}`,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
  };
  const post = async (message, more = {}) => {
    const response = await fetch(`http://127.0.0.1:${port}/bulk/mcp`, {
      method: 'POST',
      headers: { ...headers, ...more },
      body: JSON.stringify({ jsonrpc: '2.0', ...message }),
    });
    await response.arrayBuffer();
    return response;
  };
  const clientInfo = { name: 'busy-client', version: '1' };
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo };
  const opened = await post({ id: 0, method: 'initialize', params });
  const session = { 'mcp-session-id': opened.headers.get('mcp-session-id'), 'mcp-protocol-version': '2025-11-25' };
  await post({ method: 'notifications/initialized' }, session);
  let isOver = false;
  let calls = 0;
  const open = new Set();
  const startedAt = performance.now();
  const run = async () => {
    while (!isOver) {
      const due = ((performance.now() - startedAt) / 1_000) * rate;
      for (; calls < due && open.size < 50; calls += 1) {
        const echo = { id: calls + 1, method: 'tools/call', params: { name: 'echo', arguments: { text: 'x' } } };
        const call = post(echo, session)
          .catch(() => undefined)
          .finally(() => open.delete(call));
        open.add(call);
      }
      await delay(5);
    }
    await Promise.all(open);
    return calls / ((performance.now() - startedAt) / 1_000);
  };
  const done = run();
  return () => {
    isOver = true;
    return done;
  };
}

/** Counts the frames of a page for some seconds. Runs in the browser. */
const countFrames = (ms) =>
  new Promise((resolve) => {
    const gaps = [];
    const startedAt = performance.now();
    let last = startedAt;
    const onFrame = (now) => {
      gaps.push(now - last);
      last = now;
      if (now - startedAt < ms) requestAnimationFrame(onFrame);
      else resolve({ rate: (gaps.length / (now - startedAt)) * 1_000, longestMs: Math.max(...gaps) });
    };
    requestAnimationFrame(onFrame);
  });

const scene = await startScene({ isCalm: true, sessions });
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking'],
});
let isSlow = false;
try {
  const page = await (await browser.newContext({ viewport: { width: 1280, height: 900 } })).newPage();
  const devTools = await page.context().newCDPSession(page);
  await devTools.send('Performance.enable', { timeDomain: 'threadTicks' });
  const busyMs = async () => {
    const { metrics } = await devTools.send('Performance.getMetrics');
    const of = (wanted) => (metrics.find(({ name }) => name === wanted)?.value ?? 0) * 1_000;
    return { all: of('TaskDuration'), layout: of('LayoutDuration') + of('RecalcStyleDuration') };
  };
  const measure = async (name) => {
    await delay(2_000);
    const before = await busyMs();
    const frames = await page.evaluate(countFrames, seconds * 1_000);
    const after = await busyMs();
    isSlow ||= frames.rate < leastFrames;
    const percent = (kind) => ((after[kind] - before[kind]) / (seconds * 10)).toFixed(1);
    print(
      `${name}: ${frames.rate.toFixed(1)} frames/s, the longest took ${frames.longestMs.toFixed(0)} ms; the page used ${percent('all')} % of a core, ${percent('layout')} % for styles and layout`,
    );
  };
  await page.goto('about:blank');
  await measure('an empty page, for comparison');
  await page.goto(scene.url);
  await page.getByLabel('API key').fill(scene.key);
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByText('Live').waitFor();
  const stop = await keepCalling(scene);
  await measure('overview');
  await page.evaluate("location.hash = 'sessions/bulk'");
  await measure('sessions');
  await page.getByRole('searchbox', { name: 'Search' }).fill('busy-client');
  await page.getByText(/^1 of .* found$/).waitFor();
  await page.getByRole('rowheader').getByRole('link').click();
  await page.getByText('echo').first().waitFor();
  await measure('messages of a session');
  const reached = await stop();
  print(
    `${sessions} sessions, ${(2 * reached).toFixed(0)} messages/s (wanted ${2 * rate}); at least ${leastFrames} frames/s are wanted`,
  );
} finally {
  await browser.close();
  await scene.stop();
}
if (isSlow) {
  print('TOO SLOW');
  process.exitCode = 1;
}
process.exit();
