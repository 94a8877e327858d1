import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { everythingFixture, root, startGateway } from '../support/gateway.ts';
import { connectV2 } from '../support/sdk-clients.ts';

/** The npm package as its users get it: packed, and installed in an empty folder with the newest libraries that it allows. */

const run = promisify(execFile);
const { version, dependencies } = JSON.parse(readFileSync(`${root}package.json`, 'utf8'));

let folder: string;
let packed: string[];
let program: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'gangway-package-'));
  // Without scripts: others use dist at this moment.
  const { stdout } = await run('npm', ['pack', root, '--ignore-scripts', '--json', '--pack-destination', folder]);
  const [{ filename, files }] = JSON.parse(stdout);
  packed = files.map(({ path }: { path: string }) => path);
  await writeFile(join(folder, 'package.json'), '{"private":true}');
  const quiet = ['--prefer-offline', '--no-audit', '--no-fund', '--no-save'];
  await run('npm', ['install', '--prefix', folder, ...quiet, join(folder, filename)], { cwd: folder });
  program = join(folder, 'node_modules/.bin/mcp-gangway');
}, 180_000);

afterAll(() => rm(folder, { recursive: true, force: true }));

it('has the built program, with its Lua scripts, and what a reader needs; no sources, maps or tests', () => {
  const built = readdirSync(`${root}dist`, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.endsWith('.map'))
    .map(({ parentPath, name }) => relative(root, join(parentPath, name)));
  expect(built.filter((path) => path.endsWith('.lua')).length).toBeGreaterThan(5);
  const others = packed.filter((path) => !/^(?:docs|deploy)\//.test(path));
  expect(others.toSorted()).toEqual(
    [...built, 'CHANGELOG.md', 'LICENSE', 'README.md', 'SECURITY.md', 'package.json'].sort(),
  );
});

it('has every page whose URL is in a message', () => {
  const sources = readdirSync(`${root}src`, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const texts = sources.map(({ parentPath, name }) => readFileSync(join(parentPath, name), 'utf8'));
  const named = texts.flatMap((source) => [...source.matchAll(/docsPage\('([^']+)'\)/g)].map(([, page = '']) => page));
  expect(named.length).toBeGreaterThan(5);
  expect(named.filter((page) => !packed.includes(`docs/${page.replace(/#.*/, '')}`))).toEqual([]);
});

it('has what its pages link to, but for pictures, sources, examples and what is of use in a checkout alone', () => {
  const missing = packed
    .filter((page) => page.endsWith('.md'))
    .flatMap((page) => {
      const links = readFileSync(`${root}${page}`, 'utf8').matchAll(/\]\((?!https?:|#)([^)#\s]+)/g);
      return [...links].map(([, link = '']) => join(dirname(page), link).replace(/\/$/, ''));
    })
    .filter((target) => !packed.some((path) => path === target || path.startsWith(`${target}/`)))
    .filter((target) => !/^(?:docs\/images|src|packages|examples)\b/.test(target));
  expect([...new Set(missing)].sort()).toEqual(['CONTRIBUTING.md', 'test/judges/results.md', 'test/pages.test.ts']);
});

it('brings its libraries and nothing for development', () => {
  const installed = readdirSync(join(folder, 'node_modules'), { recursive: true, encoding: 'utf8' });
  for (const name of Object.keys(dependencies)) expect(installed, name).toContain(join(name, 'package.json'));
  for (const name of ['vitest', 'typescript', join('@modelcontextprotocol', 'sdk')]) {
    expect(installed).not.toContain(name);
  }
});

it('is a program and no library: there is nothing to import', async () => {
  expect((await run(program, ['--version'])).stdout.trim()).toBe(version);
  const script = `await import('mcp-gangway').catch(({ code }) => console.log(code))`;
  const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', script], { cwd: folder });
  expect(stdout.trim()).toBe('ERR_PACKAGE_PATH_NOT_EXPORTED');
});

it('serves a session when it is started from there', async () => {
  const gateway = await startGateway({ program: [program], cwd: folder, command: everythingFixture });
  const client = await connectV2(gateway.url);
  expect(await client.callTool('echo', { text: 'packed' })).toContain('packed');
  await client.close();
  expect(await gateway.stop()).toEqual({ code: 0, signal: null });
});
