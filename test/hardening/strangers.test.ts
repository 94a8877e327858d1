import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { digestOfKey } from '../../src/core/auth/api-keys.ts';
import { everythingFixture } from '../support/gateway.ts';
import { initialize, post } from '../support/http-client.ts';
import { type LocalGateway, startLocalGateway } from '../support/local-gateway.ts';
import { scrape } from '../support/metrics.ts';
import { findFreePort } from '../support/redis-process.ts';
import { waitFor } from '../support/wait-for.ts';
import { connectRaw, requestText, sendRaw } from './raw-http.ts';

const [goodKey, oldKey] = ['key-of-alice-0123456789-0123456789', 'key-of-bob-0123456789-0123456789012'];
const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
const folder = mkdtempSync(join(tmpdir(), 'gangway-strangers-'));
const auditFile = join(folder, 'audit.jsonl');
let gateway: LocalGateway;
let adminPort: number;
beforeAll(async () => {
  const keys = join(folder, 'keys.json');
  const old = { name: 'bob', sha256: digestOfKey(oldKey), expires: '2020-01-01T00:00:00Z' };
  writeFileSync(keys, JSON.stringify([{ name: 'alice', sha256: digestOfKey(goodKey) }, old]));
  adminPort = await findFreePort();
  gateway = await startLocalGateway({
    adminPort,
    args: ['--api-keys-file', keys, '--observe.audit', auditFile],
    command: everythingFixture,
    isStoppedWithTest: false,
  });
});
afterAll(async () => {
  await gateway?.stop();
  rmSync(folder, { recursive: true });
});

const refusals = () => gateway.logs().filter(({ msg }) => msg === 'refused a request');
const told = (of: object) => waitFor(() => refusals().find((line) => isOf(line, of)), { what: JSON.stringify(of) });
const isOf = (line: Record<string, unknown>, of: object): boolean =>
  Object.entries(of).every(([key, value]) => JSON.stringify(line[key]) === JSON.stringify(value));

describe('whoever is not let in leaves a line with the reason', () => {
  it.each([
    [
      'an unknown key',
      { Authorization: `Bearer ${'x'.repeat(40)}` },
      { why: 'unknown_key' },
      'The key is not valid here',
    ],
    [
      'an expired key',
      { Authorization: `Bearer ${oldKey}` },
      { why: 'expired_key', seen: { name: 'bob', expired: '2020-01-01T00:00:00.000Z' } },
      'The key has expired',
    ],
    [
      'another scheme',
      { Authorization: 'Basic eA==' },
      { why: 'no_bearer' },
      'The Authorization header contains no Bearer token',
    ],
    ['no key', {}, { reason: 'credentials_required' }, undefined],
  ])('[P-05] %s', async (_, headers, line, description) => {
    const { status, headers: answered, json } = await post(gateway.url, ping, headers);
    expect(status).toBe(401);
    expect(json.error.data.error_description).toBe(description);
    const said = /error_description="([^"]*)"/.exec(String(answered['www-authenticate']))?.[1];
    expect(said).toBe(description);
    expect(await told(line)).toMatchObject({ level: 'warn', server: 'everything-server' });
    expect(gateway.stderr()).not.toContain(oldKey);
  });

  it.each([
    ['Host: evil.example:99', [], { reason: 'host_not_allowed', why: 'Host', seen: 'evil.example:99' }],
    ['Host: localhost', ['Origin: https://evil.example'], { why: 'Origin', seen: 'https://evil.example' }],
    ['Host: localhost', [`Origin: a|31m${'x'.repeat(500)}`], { why: 'Origin', seen: `a|31m${'x'.repeat(115)}` }],
  ])('[P-05] [S-14] %s %j', async (host, headers, line) => {
    const first = refusals().length;
    await waitFor(async () => {
      const text = requestText('POST /mcp HTTP/1.1', [host, 'Connection: close', 'Content-Length: 0', ...headers]);
      expect((await sendRaw(gateway.port, text)).status).toBe(403);
      return refusals()
        .slice(first)
        .some((each) => isOf(each, line));
    });
  });
});

describe('a flood of strangers', () => {
  it('[S-14] is counted whole, and leaves few lines in the log and the audit file', async () => {
    const before =
      (await scrape(adminPort)).value('mcp_gangway_refused_http_requests_total', { reason: 'credentials_invalid' }) ??
      0;
    const lines = refusals().length;
    const audited = () =>
      readFileSync(auditFile, 'utf8')
        .split('\n')
        .filter(Boolean)
        .map((text) => JSON.parse(text));
    const auditedBefore = audited().length;
    const startedAt = performance.now();
    const count = 600;
    const agent = new Agent({ keepAlive: true, maxSockets: 4 });
    const ask = (): Promise<unknown> =>
      new Promise((resolve, reject) => {
        const asked = request(gateway.url, { method: 'POST', agent, headers: { Authorization: 'Bearer stranger' } });
        asked.on('response', (response) => response.resume().on('end', resolve)).on('error', reject);
        asked.end('{}');
      });
    await Promise.all(Array.from({ length: count }, ask));
    agent.destroy();
    const seconds = Math.ceil((performance.now() - startedAt) / 1_000);
    const after = await scrape(adminPort);
    expect(after.value('mcp_gangway_refused_http_requests_total', { reason: 'credentials_invalid' })).toBe(
      before + count,
    );
    const strangers = { cause: 'unknown_key', server: 'everything-server' };
    expect(after.value('mcp_gangway_refused_credentials_total', strangers)).toBeGreaterThanOrEqual(count);
    const flood = (all: readonly Record<string, unknown>[]) =>
      all.filter(({ reason }) => reason === 'credentials_invalid');
    const sum = (all: readonly Record<string, unknown>[]) =>
      flood(all).reduce((total, { leftOut }) => total + 1 + Number(leftOut ?? 0), 0);
    await waitFor(() => sum(refusals().slice(lines)) >= count && sum(audited().slice(auditedBefore)) >= count);
    // Lines of earlier tests are told of in the first second, too.
    expect(flood(refusals().slice(lines)).length).toBeLessThanOrEqual(seconds + 4);
    expect(flood(audited().slice(auditedBefore)).length).toBeLessThanOrEqual(seconds + 4);
  });

  it('[S-14] keeps no connection for long that was not let in, and keeps those of clients', async () => {
    const stranger = await connectRaw(gateway.port);
    stranger.write(requestText('GET /mcp HTTP/1.1', ['Host: localhost']));
    const answer = await stranger.answer();
    expect([answer.status, answer.headers.get('keep-alive')]).toEqual([401, 'timeout=5']);
    const client = await connectRaw(gateway.port);
    client.write(requestText('GET /healthz HTTP/1.1', ['Host: localhost']));
    await client.answer();
    await stranger.closed({ deadlineMs: 30_000 });
    expect(client.socket.destroyed).toBe(false);
    client.drop();
    const pooled = await connectRaw(gateway.port);
    pooled.write(requestText('GET /mcp HTTP/1.1', ['Host: localhost', 'X-Forwarded-For: 192.0.2.7']));
    const refused = await pooled.answer();
    expect([refused.status, refused.headers.get('keep-alive')]).toEqual([401, 'timeout=75']);
    pooled.drop();
    const session = await initialize(gateway.url, { headers: { Authorization: `Bearer ${goodKey}` } });
    expect((await session.request('ping')).status).toBe(200);
  });

  it('[E-05] of connections leaves few lines, and each is counted', async () => {
    const port = await findFreePort();
    const full = await startLocalGateway({
      adminPort: port,
      args: ['--max-sessions', '1'],
      command: everythingFixture,
    });
    const held = await Promise.all(Array.from({ length: 1_000 }, () => connectRaw(full.port))); // as many as there may be
    const startedAt = performance.now();
    for (let n = 0; n < 300; n++) await (await connectRaw(full.port)).closed();
    const seconds = Math.ceil((performance.now() - startedAt) / 1_000);
    for (const connection of held) connection.drop();
    const lines = () => full.logs().filter(({ msg }) => String(msg).startsWith('closed a client connection'));
    const sum = () => lines().reduce((total, { leftOut }) => total + 1 + Number(leftOut ?? 0), 0);
    await waitFor(() => sum() === 300, { what: 'all to be told of' });
    expect(lines().length).toBeLessThanOrEqual(seconds + 2);
    expect((await scrape(port)).value('mcp_gangway_http_connections_dropped_total')).toBe(300);
  });
});
