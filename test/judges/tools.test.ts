// Tools of Debian that attack, load or inspect a server at its HTTP and TLS. They judge the gateway alone: there is no direct arm.
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { everythingReference, type Gateway, startGateway } from '../support/gateway.ts';
import { modernBody, modernHeaders, postModern } from '../support/modern-client.ts';
import { findFreePort } from '../support/redis-process.ts';
import { certificateFolder } from '../support/server-certificate.ts';
import { statusPageOf } from '../support/status-page.ts';
import { keep } from './judge.ts';

const judge = 'Tools for HTTP and TLS';
const packages = 'slowhttptest nghttp2-client testssl.sh varnish wapiti';
const script = fileURLToPath(new URL('http.vtc', import.meta.url));

/** The longest time for a head and a body, in seconds (`timeouts` in docs/reference/configuration.md). */
const headAndBodyS = 30;
const connections = 200;

const folder = mkdtempSync(join(tmpdir(), 'gangway-tools-'));
const certificates = certificateFolder();
let gateway: Gateway;

/** Runs a tool and resolves with its output, whatever its exit code is. Says what to install if it is missing. */
async function run(tool: string, args: readonly string[]): Promise<{ code: number; output: string }> {
  return new Promise((resolve, reject) => {
    execFile(tool, args, { cwd: folder, timeout: 500_000, maxBuffer: 1e8 }, (error, stdout, stderr) => {
      if (error?.code === ('ENOENT' as unknown))
        reject(new Error(`${tool} is missing. Install it with: apt-get install ${packages}`));
      else resolve({ code: typeof error?.code === 'number' ? error.code : 0, output: stdout + stderr });
    });
  });
}

const note = (scenario: string, failed: readonly string[], passed: number, cell?: string): void =>
  keep({ judge, arm: 'the gateway', scenario, passed, failed, ...(cell !== undefined && { cell }) });

beforeAll(async () => {
  // As users run it: the tests of the repository give each request of 2026-07-28 a process of its own.
  gateway = await startGateway({
    command: everythingReference,
    env: { GANGWAY_SHARE: undefined },
    isStoppedWithTest: false,
  });
});

afterAll(async () => {
  await gateway?.stop();
  rmSync(folder, { recursive: true });
  await certificates.remove();
});

test.each([
  ['slow heads', ['-H'], true],
  ['slow bodies', ['-B', '-s', '8192', '-f', 'application/json'], true],
  ['slow readers', ['-X'], false],
] as const)('slowhttptest, %s: others are served, and connections end in time', async (name, kind, endsAll) => {
  const words = [...kind, '-c', `${connections}`, '-r', '100', '-i', '2', '-p', '2', '-l', `${headAndBodyS + 15}`];
  let [isOver, calls] = [false, 0];
  const others = (async () => {
    for (; !isOver; calls += 1) expect((await postModern(gateway.url, 'tools/list')).status).toBe(200);
  })();
  const { output } = await run('slowhttptest', [...words, '-u', gateway.url, '-t', 'POST']).finally(() => {
    isOver = true;
  });
  await others;
  // Colour codes stand between the words and the numbers.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what they begin with
  const plain = output.replace(/\u001b\[[\d;]*m/g, '');
  const failed = [
    ...(/service available: +YES/.test(plain) && !/service available: +NO/.test(plain) ? [] : ['service available']),
    ...(!endsAll || /Exit status: No open connections left/.test(plain) ? [] : ['connections end']),
  ];
  note(`slowhttptest, ${name}`, failed, 2 - failed.length, `${connections} connections`);
  expect(failed, plain).toEqual([]);
  expect(calls).toBeGreaterThan(10);
});

test('h2load: each of 3,000 requests of 16 clients is answered with 200', async () => {
  const body = join(folder, 'body.json');
  writeFileSync(body, JSON.stringify(modernBody('tools/list')));
  const headers = Object.entries(modernHeaders('tools/list')).flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
  const { output } = await run('h2load', ['--h1', '-n', '3000', '-c', '16', '-d', body, ...headers, gateway.url]);
  const failed = /status codes: 3000 2xx/.test(output) ? [] : ['answers'];
  note('h2load, HTTP/1.1', failed, 1 - failed.length, '3,000 requests');
  expect(failed, output).toEqual([]);
});

test('varnishtest: requests as clients, proxies and attackers write them', async () => {
  const address = `127.0.0.1:${gateway.port}`;
  const { code, output } = await run('varnishtest', ['-D', `gateway=${address}`, script]);
  const clients = readFileSync(script, 'utf8').match(/^client /gm)?.length ?? 0;
  note('varnishtest, test/judges/http.vtc', code === 0 ? [] : ['script'], clients);
  expect(code, output).toBe(0);
});

/** The findings that a certificate of a test cannot avoid: self-signed, for two days, of no authority with lists. */
const ofTestCertificates = [
  'cert_chain_of_trust',
  'cert_expirationStatus',
  'cert_notAfter',
  'cert_revocation',
  'DNS_CAArecord',
];

test('testssl.sh: no finding but those of the certificate', async () => {
  const { cert, key } = await certificates.make('localhost', 'DNS:localhost,IP:127.0.0.1');
  const encrypted = await startGateway({ args: ['--tls-cert', cert, '--tls-key', key], command: everythingReference });
  const report = join(folder, 'tls.json');
  const checks = ['--protocols', '--std', '--fs', '--server-preference', '--server-defaults', '--vulnerable'];
  const where = ['--ip', '127.0.0.1', `https://localhost:${encrypted.port}/`];
  const { output } = await run('testssl', ['--quiet', '--color', '0', '--jsonfile', report, ...checks, ...where]);
  const findings: { id: string; severity: string; finding: string }[] = JSON.parse(readFileSync(report, 'utf8'));
  const bad = findings.filter(({ severity }) => !['OK', 'INFO'].includes(severity)).map(({ id }) => id);
  note(
    'testssl.sh',
    bad.filter((id) => !ofTestCertificates.includes(id)),
    findings.length - bad.length,
  );
  expect(findings.length, output).toBeGreaterThan(50);
  expect(bad.sort(), JSON.stringify(findings, null, 1)).toEqual([...ofTestCertificates].sort());
});

/** What wapiti wants of any page. Why the gateway does without each is on docs/conformance.md. */
const headersOfOld = [
  'Strict-Transport-Security is not set',
  'X-Frame-Options is not set',
  'X-XSS-Protection is not set',
];

test.each([
  ['endpoint', ({ url }: Gateway) => url, ['CSP is not set', ...headersOfOld]],
  ['status page', (of: Gateway) => statusPageOf(of).origin, headersOfOld],
] as const)('wapiti, %s: no finding but headers that do not apply', async (name, urlOf, known) => {
  const observed = await startGateway({ adminPort: await findFreePort(), command: everythingReference });
  const report = join(folder, `${name}.json`);
  const words = ['--scope', 'folder', '--flush-session', '-m', 'all', '-f', 'json', '-o', report];
  const { output } = await run('wapiti', ['-u', urlOf(observed), ...words]);
  const {
    vulnerabilities,
    anomalies,
  }: Record<string, Record<string, { info: string }[]>> = JSON.parse(readFileSync(report, 'utf8'));
  const kinds = Object.entries({ ...vulnerabilities, ...anomalies });
  const found = kinds.flatMap(([, each]) => each.map(({ info }) => info)).sort();
  note(
    `wapiti, ${name}`,
    found.filter((info) => !known.includes(info as never)),
    kinds.length - (found.length > 0 ? 1 : 0),
  );
  expect(found, output).toEqual([...known].sort());
});
