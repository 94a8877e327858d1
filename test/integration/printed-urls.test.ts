import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, request } from 'node:http';
import { request as requestOverTls } from 'node:https';
import type { AddressInfo, LookupFunction } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { root } from '../support/gateway.ts';
import { findFreePort } from '../support/redis-process.ts';
import { certificateFolder } from '../support/server-certificate.ts';

const run = promisify(execFile);
const mini = [process.execPath, `${root}test/fixtures/children/mini-server.mjs`] as const;
const key = 'k'.repeat(40);

/** Any name is this machine, as the names of a real installation would be. */
const lookup: LookupFunction = (_name, options, callback) =>
  options.all ? callback(null, [{ address: '127.0.0.1', family: 4 }]) : callback(null, '127.0.0.1', 4);

/** The status of a GET; the body is not awaited, because an event stream has no end. */
async function statusOf(url: string, ca: string | undefined): Promise<number> {
  const isTls = /^(?:https|wss):/.test(url);
  const target = url.replace(/^ws/, 'http');
  const headers = { accept: 'text/event-stream, text/html, */*', authorization: `Bearer ${key}` };
  const sent = isTls ? requestOverTls(target, { headers, lookup, ca }) : request(target, { headers, lookup });
  sent.on('error', () => undefined).end();
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  sent.destroy();
  return response.statusCode ?? 0;
}

/** Runs the gateway until it has printed everything. */
async function start(args: readonly string[]): Promise<{ banner: string; urls: readonly string[] }> {
  const child = spawn(process.execPath, [`${root}dist/main.js`, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(async () => {
    const exit = once(child, 'exit');
    child.kill();
    await exit;
  });
  let [banner, log] = ['', ''];
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log += text;
  });
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    banner += text;
  });
  await expect.poll(() => banner, { timeout: 20_000, message: log }).toMatch(/^(?:Try it|Check the servers): .*\n/m);
  const rows = [...banner.matchAll(/^(?:Ready: | {2}\S+ {2,})((?:https?):\/\/\S+)(?: {2}\((.*)\))?$/gm)];
  const besides = rows.flatMap(([, url, others = '']) =>
    [...others.matchAll(/\/\S*?(?=,|$)/g)].map(([path]) => new URL(path, url).href),
  );
  const printed = `${banner}${log}`.match(/\b(?:https?|wss?):\/\/[^\s"'\\)]+/g) ?? [];
  return {
    banner,
    urls: [...new Set([...printed, ...besides])].filter((url) => !url.startsWith('https://github.com/')),
  };
}

/** A proxy that removes the prefix of its URL and keeps the Host of the client. */
async function startProxy(prefix: string, gatewayPort: number): Promise<number> {
  const proxy = createServer((received, response) => {
    const { method, headers, url = '' } = received;
    const path = url.startsWith(prefix) ? url.slice(prefix.length) : '/outside';
    const forwarded = request({ host: '127.0.0.1', port: gatewayPort, method, headers, path }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    forwarded.on('error', () => response.destroy());
    response.on('close', () => forwarded.destroy());
    received.pipe(forwarded);
  }).listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  onTestFinished(() => {
    proxy.close();
    proxy.closeAllConnections();
  });
  return (proxy.address() as AddressInfo).port;
}

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'gangway-urls-'));
  onTestFinished(() => rmSync(path, { recursive: true }));
  return path;
}

interface Situation {
  readonly args: readonly string[];
  readonly ca?: string;
  /** The beginning of the URLs for clients. */
  readonly base?: string;
}

async function certified(names: string) {
  const certificates = certificateFolder();
  onTestFinished(() => certificates.remove());
  const { cert, key: privateKey } = await certificates.make('own', names);
  return { cert, options: ['--tls-cert', cert, '--tls-key', privateKey] };
}

const command = ['--', ...mini];
const situations: Readonly<Record<string, (port: number) => Promise<Situation> | Situation>> = {
  default: () => ({ args: command }),
  'all addresses and an allowed host': (port) => ({
    args: ['--host', '0.0.0.0', '--listen.adminHost', '0.0.0.0', '--allow-host', 'mcp.example.com', ...command],
    base: `http://mcp.example.com:${port}/`,
  }),
  'all addresses': () => ({ args: ['--host', '0.0.0.0', ...command] }),
  'a public URL with a prefix': async (port) => {
    const base = `http://gateway.example.com:${await startProxy('/tools', port)}/tools`;
    return { args: ['--public-url', base, ...command], base };
  },
  TLS: async () => {
    const { cert, options } = await certified('DNS:mcp.example.com');
    return { args: ['--allow-host', 'mcp.example.com', ...options, ...command], ca: cert };
  },
  'TLS at an address': async () => {
    const { cert, options } = await certified('IP:127.0.0.1');
    return { args: [...options, ...command], ca: cert };
  },
  'another path': () => ({ args: ['--path', '/ai/mcp', ...command] }),
  'several servers and keys': async () => {
    const at = folder();
    const server = { command: mini[0], args: [mini[1]] };
    writeFileSync(join(at, 'gangway.json'), JSON.stringify({ mcpServers: { one: server, two: server } }));
    const sha256 = createHash('sha256').update(key).digest('hex');
    writeFileSync(join(at, 'keys.json'), JSON.stringify([{ name: 'ada', sha256 }]));
    return { args: ['--api-keys-file', join(at, 'keys.json'), '--config', join(at, 'gangway.json')] };
  },
};

test.each(Object.entries(situations))('[P-03] every URL that is printed works: %s', async (_name, situationAt) => {
  const [port, adminPort] = [await findFreePort(), await findFreePort()];
  const { args, ca, base = 'http' } = await situationAt(port);
  const { banner, urls } = await start(['--port', `${port}`, '--admin-port', `${adminPort}`, ...args]);
  expect(urls.filter((url) => url.includes('0.0.0.0'))).toEqual([]);
  expect(urls.filter((url) => url.startsWith(base)).length).toBeGreaterThan(1);
  const trusted = ca === undefined ? undefined : readFileSync(ca, 'utf8');
  // An endpoint answers a GET without a session with 400, 405 or 426. No page has the base URL for a proxy.
  const known = (url: string): readonly number[] => {
    if (/(?:mcp|sse|ws)$/.test(url)) return [200, 400, 405, 426];
    return /:\d+$/.test(url) ? [404] : [200];
  };
  for (const url of urls) expect(known(url), url).toContain(await statusOf(url, trusted));
  const [, line = ''] = /^Try it: (.*)$/m.exec(banner) ?? [];
  // Other names are in no DNS here.
  if (!line.includes('//127.0.0.1:')) return;
  const { stdout } = await run('sh', ['-c', line.replace('Bearer KEY', `Bearer ${key}`)], { cwd: root });
  expect(stdout).toMatch(/^OK /);
});
