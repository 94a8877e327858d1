import { execFile } from 'node:child_process';
import { hash } from 'node:crypto';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { onTestFinished } from 'vitest';

const run = promisify(execFile);

/** A STDIO server without dependencies. Its tool `version` tells the version of its package. */
const serverText = `#!/usr/bin/env node
const { name, version } = require('./package.json');
const answers = {
  initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name, version } }),
  ping: () => ({}),
  'tools/list': () => ({ tools: [{ name: 'version', inputSchema: { type: 'object' } }] }),
  'tools/call': () => ({
    content: [{ type: 'text', text: JSON.stringify({ version, args: process.argv.slice(2), parent: process.ppid }) }],
  }),
};
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const answer = answers[method];
  const result = answer && answer(params);
  const error = { code: -32601, message: 'Method not found' };
  console.log(JSON.stringify({ jsonrpc: '2.0', id, ...(result ? { result } : { error }) }));
});
`;

/** A package of the registry. */
export interface PublishedPackage {
  readonly name: string;
  readonly version: string;
  /** By default, one program with the name of the package. */
  readonly bin?: Readonly<Record<string, string>>;
  readonly scripts?: Readonly<Record<string, string>>;
}

/** A registry of npm on this machine, with the packages of a test. */
export interface PackageRegistry {
  /** The variables with which npm uses the registry, and nothing of its user's cache. */
  readonly env: Readonly<Record<string, string>>;
  /** A folder for the packages of gateways, which is removed with the test. */
  readonly folder: string;
  /** The paths of all requests so far. */
  readonly requests: readonly string[];
  publish(each: PublishedPackage): Promise<void>;
  /** No request is answered from now on, until the function is called that it returns. */
  hold(): () => void;
  /** Answers nothing any more, as without a network. */
  close(): Promise<void>;
}

/** Starts a registry with these packages. It ends with the test. */
export async function startPackageRegistry(...packages: readonly PublishedPackage[]): Promise<PackageRegistry> {
  const home = await mkdtemp(join(tmpdir(), 'gangway-packages-'));
  const tarballs = new Map<string, Buffer>();
  const documents = new Map<
    string,
    { name: string; 'dist-tags': { latest: string }; versions: Record<string, object> }
  >();
  const requests: string[] = [];
  let held = Promise.resolve();
  const server = createServer(async (incoming, outgoing) => {
    const path = decodeURIComponent(incoming.url ?? '');
    requests.push(path);
    await held;
    const tarball = tarballs.get(path);
    const document = documents.get(path.slice(1));
    if (tarball !== undefined) outgoing.end(tarball);
    else if (document !== undefined) outgoing.end(JSON.stringify(document));
    else outgoing.writeHead(404, { 'content-type': 'application/json' }).end('{"error":"not found"}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const registry = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  onTestFinished(async () => {
    await close();
    await rm(home, { recursive: true, force: true });
  });
  const publish = async (each: PublishedPackage): Promise<void> => {
    const { name, version, bin = { [name.replace(/.*\//, '')]: 'server.js' }, scripts = {} } = each;
    const tarball = await pack(home, { name, version, bin, scripts });
    const path = `/${name}/-/${version}.tgz`;
    tarballs.set(path, tarball);
    const known = documents.get(name)?.versions ?? {};
    const integrity = `sha512-${hash('sha512', tarball, 'base64')}`;
    const dist = { tarball: registry + path, integrity };
    const hasInstallScript = Object.keys(scripts).length > 0;
    const versions = { ...known, [version]: { name, version, bin, scripts, hasInstallScript, dist } };
    documents.set(name, { name, 'dist-tags': { latest: version }, versions });
  };
  for (const each of packages) await publish(each);
  const env = { HOME: home, npm_config_registry: registry, npm_config_cache: join(home, 'cache') };
  const hold = (): (() => void) => {
    let release = (): void => undefined;
    held = new Promise((resolve) => {
      release = resolve;
    });
    return () => release();
  };
  return { env, folder: join(home, 'installed'), requests, publish, hold, close };
}

/** Packs a package: its files, below the folder `package`. */
async function pack(home: string, manifest: Required<PublishedPackage>): Promise<Buffer> {
  const source = await mkdtemp(join(home, 'source-'));
  await writeFile(join(source, 'package.json'), JSON.stringify(manifest));
  for (const file of new Set(Object.values(manifest.bin))) {
    await mkdir(dirname(join(source, file)), { recursive: true });
    await writeFile(join(source, file), serverText);
    await chmod(join(source, file), 0o755);
  }
  // As `npm pack` does, whose start takes a second of processor time.
  const tarball = join(home, `${basename(source)}.tgz`);
  await run('tar', [
    '--create',
    '--gzip',
    '--file',
    tarball,
    '--transform',
    's,^\\.,package,',
    '--directory',
    source,
    '.',
  ]);
  return readFile(tarball);
}
