// Makes the pictures of docs/images from a real gateway: npm run build && node test/page/pictures.mjs
// Its clients are of the SDK, its servers those of the tests. The moving picture needs img2webp (Debian: webp).
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { chromium } from 'playwright-core';

const root = fileURLToPath(new URL('../..', import.meta.url));
const [port, adminPort] = [18_080, 19_464];
const server = (name, ...args) => ({ command: process.execPath, args: [`${root}test/fixtures/${name}`, ...args] });
const folder = mkdtempSync(join(tmpdir(), 'gangway-pictures-'));
writeFileSync(
  join(folder, 'gangway.json'),
  JSON.stringify({
    mcpServers: {
      everything: server('everything-server.mjs'),
      notes: { ...server('modern-server.mjs'), era: 'modern' },
      database: {
        command: process.execPath,
        args: ['-e', 'console.error("connect ECONNREFUSED 127.0.0.1:5432"); process.exit(1)'],
      },
    },
  }),
);
const gateway = spawn(
  process.execPath,
  [
    `${root}dist/main.js`,
    '--port',
    `${port}`,
    '--admin-port',
    `${adminPort}`,
    '--config',
    join(folder, 'gangway.json'),
  ],
  { stdio: ['ignore', 'pipe', 'inherit'] },
);
let printed = '';
for await (const chunk of gateway.stdout.setEncoding('utf8')) {
  printed += chunk;
  if (/^Status page: .*\n/m.test(printed)) break;
}
const [statusPage] = /http\S+#[\w-]{43}/.exec(printed);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking'],
});

async function connect(name) {
  const client = new Client({ name: 'my-client', version: '1.0' });
  await client.connect(new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${port}/${name}/mcp`)));
  await client.listTools(); // the page names the tools that their server has listed
  return client;
}

async function picture(name, view, options, use = () => undefined) {
  const context = await browser.newContext({ ...options, deviceScaleFactor: 1 });
  const page = await context.newPage();
  await page.goto(statusPage);
  await page.getByText('Live').waitFor();
  await page.evaluate((name) => {
    location.hash = name;
  }, view);
  await use(page);
  await delay(1_200);
  await page.screenshot({ path: `${root}docs/images/${name}.png` });
  await context.close();
}

const frameMs = 200;

/** The part of the page that is recorded. */
const recorded = { width: 1280, height: 740 };

/** Records a page from now on. `end` writes the moving picture, whose last frame stays for a while. */
function record(page, name) {
  const frames = [];
  let isOver = false;
  const taken = (async () => {
    while (!isOver) {
      const path = join(folder, `${name}-${String(frames.length).padStart(4, '0')}.png`);
      const next = delay(frameMs);
      await page.screenshot({ path, clip: { x: 0, y: 56, ...recorded } });
      frames.push(path);
      await next;
    }
  })();
  return {
    async end() {
      isOver = true;
      await taken;
      const timed = frames.flatMap((path, index) => ['-d', index === frames.length - 1 ? 4_000 : frameMs, path]);
      const file = `${root}docs/images/${name}.webp`;
      execFileSync('img2webp', ['-loop', 0, '-mixed', '-q', 60, '-m', 6, ...timed, '-o', file].map(String));
    },
  };
}

const desk = { viewport: { width: 1280, height: 860 } };
const phone = { viewport: { width: 390, height: 780 } };
try {
  mkdirSync(`${root}docs/images`, { recursive: true });
  await delay(2_000);
  const clients = await Promise.all(['everything', 'everything', 'everything', 'notes', 'notes'].map(connect));
  await connect('database').catch(() => undefined);
  let isOver = false;
  const work = clients.map(async (client, index) => {
    while (!isOver) {
      const isFailing = index === 1 && Math.sin(Date.now() / 5_000) > 0.6;
      const name = isFailing ? 'test_error_handling' : 'echo';
      await client.callTool({ name, arguments: isFailing ? {} : { text: 'hello' } }).catch(() => undefined);
      await delay(20 + 60 * index + 200 * Math.abs(Math.sin(Date.now() / 7_000 + index)));
    }
  });
  await delay(Number(process.env.WARM_MS ?? 60_000));
  await picture('playground-desktop-dark', 'playground/everything', { ...desk, colorScheme: 'dark' }, async (page) => {
    await page.getByRole('button', { name: 'progress', exact: true }).click();
    await page.getByLabel('count').fill('9');
    await page.getByLabel('gapMs').fill('600');
    await page.getByLabel('marker').fill('nothing is lost');
    await page.evaluate('scrollTo(0, 240)');
    const recording = record(page, 'cut-and-resume');
    await page.getByRole('button', { name: 'Call', exact: true }).click();
    await page.getByText('notifications/progress 3 of 9').waitFor();
    await page.getByRole('button', { name: 'Cut the connection' }).click();
    await page.getByText(/^Done after/).waitFor();
    await delay(2 * frameMs);
    await recording.end();
  });
  await picture('status-desktop-light', 'overview', { ...desk, colorScheme: 'light' });
  await picture('status-phone-dark', 'overview', { ...phone, colorScheme: 'dark' });
  await picture('sessions-phone-light', 'sessions', { ...phone, colorScheme: 'light' }, async (page) => {
    await page
      .getByRole('row', { name: /everything/ })
      .last()
      .getByRole('link')
      .click();
    await page
      .getByText(/ · ok$/)
      .first()
      .waitFor();
  });
  isOver = true;
  await Promise.all(work);
} finally {
  await browser.close();
  gateway.kill();
  rmSync(folder, { recursive: true });
}
