import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { everythingFixture, root, startGateway } from '../support/gateway.ts';
import { findFreePort } from '../support/redis-process.ts';
import { connectV1 } from '../support/sdk-clients.ts';

/** Writes the names of the modules of Node.js that were loaded, when the process exits. */
const writeBuiltins = (file: string): string =>
  `--import=data:text/javascript,${encodeURIComponent(
    `const fs = process.getBuiltinModule('node:fs'); process.on('exit', () => fs.writeFileSync(${JSON.stringify(file)}, JSON.stringify(process.moduleLoadList)));`,
  )}`;

interface LoadedModules {
  /** The files of `dist`. */
  readonly files: readonly string[];
  /** The packages that npm has installed. */
  readonly packages: readonly string[];
  /** The files of `src` that are part of the loaded files of `dist`. */
  readonly sources: readonly string[];
  /** The modules of Node.js. */
  readonly builtins: readonly string[];
}

/** The modules that a gateway has loaded until the end of its first session. */
async function modulesOfStart(): Promise<LoadedModules> {
  const folder = await mkdtemp(join(tmpdir(), 'gangway-start-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const builtins = join(folder, 'builtins');
  const gateway = await startGateway({
    adminPort: await findFreePort(),
    command: everythingFixture,
    env: { NODE_V8_COVERAGE: folder, NODE_OPTIONS: writeBuiltins(builtins) },
  });
  const client = await connectV1(gateway.url);
  await client.close();
  await gateway.stop();
  // The server writes a file, too.
  const file = readdirSync(folder).find((name) => name.startsWith(`coverage-${gateway.pid}-`)) ?? '';
  const { result } = JSON.parse(readFileSync(join(folder, file), 'utf8'));
  const urls: string[] = result.map(({ url }: { readonly url: string }) => url);
  const paths = urls
    .filter((url) => url.startsWith('file:'))
    .map((url) => relative(root, fileURLToPath(url)).split(sep).join('/'));
  // A file without a map only names where the exports of a chunk are.
  const files = paths.filter((path) => path.startsWith('dist/'));
  const maps = files
    .filter((path) => existsSync(`${root}${path}.map`))
    .map((path) => readFileSync(`${root}${path}.map`, 'utf8'));
  const packages = paths.flatMap((path) => /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? []);
  return {
    files,
    packages: [...new Set(packages)].sort(),
    sources: maps.flatMap((map) => JSON.parse(map).sources).map((path: string) => path.replace('../', '')),
    builtins: JSON.parse(readFileSync(builtins, 'utf8')),
  };
}

/** pino and its dependencies. */
const logger = [
  '@pinojs/redact',
  'atomic-sleep',
  'on-exit-leak-free',
  'pino',
  'pino-std-serializers',
  'quick-format-unescaped',
  'safe-stable-stringify',
  'sonic-boom',
  'thread-stream',
];

/** Parts that only some gateways or some requests need. */
const lateSources =
  /^src\/(?:auth\/oauth\/(?!protected-resources)|backend\/tracing|http\/send-response|http\/pipeline\/trace-requests|ops\/find-tracing|ops\/metrics\/exposition|store\/redis\/(?:redis-store|connection\/connect|diagnose\/inspect))/;

it('a gateway loads only what its first session needs', async () => {
  const { files, packages, sources, builtins } = await modulesOfStart();
  // One for the start, those before it, and the parts of a client's first request.
  expect(files.length).toBeLessThanOrEqual(40);
  expect(packages).toEqual([...logger, 'hono', 'shell-quote'].sort());
  expect(sources).toContain('src/app/gateway.ts');
  expect(sources.filter((path) => lateSources.test(path))).toEqual([]);
  expect(builtins).toContain('NativeModule http');
  // An import of node:http would load it, unless the build replaces the import.
  expect(builtins).not.toContain('NativeModule internal/deps/undici/undici');
});

it('the libraries in the bundle have exact versions, so that audits see the version that runs', () => {
  const { dependencies } = JSON.parse(readFileSync(`${root}package.json`, 'utf8'));
  const licences = readFileSync(`${root}dist/LICENSES.txt`, 'utf8');
  const bundled = [...licences.matchAll(/^([@a-z][\w/-]*) (\d\S*)$/gm)].map(([, name = '', version]) => [
    name,
    version,
  ]);
  expect(bundled.map(([name]) => name)).toEqual(['zod']);
  for (const [name, version] of bundled) {
    const { version: installed } = JSON.parse(readFileSync(`${root}node_modules/${name}/package.json`, 'utf8'));
    expect([dependencies[`${name}`], version]).toEqual([installed, installed]);
  }
});
