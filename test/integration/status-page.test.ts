import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { digestOfKey } from '../../src/core/auth/api-keys.ts';
import { everythingFixture, type Gateway, root, startGateway } from '../support/gateway.ts';
import { initialize } from '../support/http-client.ts';
import { findFreePort } from '../support/redis-process.ts';
import { pageHeaders } from '../support/status-page.ts';
import { waitFor } from '../support/wait-for.ts';

async function start(...args: readonly string[]) {
  const adminPort = await findFreePort();
  const gateway = await startGateway({ adminPort, args, command: everythingFixture });
  return { gateway, admin: `http://127.0.0.1:${adminPort}`, adminPort };
}

/** What the page sends that asks nobody for a key or word. */
const page = { 'x-gangway-page': '1', 'content-type': 'application/json' };
const letIn = (gateway: Gateway) => ({ ...page, ...pageHeaders(gateway) });
const drain = (admin: string, headers: Record<string, string>): Promise<Response> =>
  fetch(`${admin}/status/actions/drain`, { method: 'POST', headers, body: '{}' });

/** A request with any headers: fetch sets some of its own. */
async function raw(port: number, path: string, method: string, headers: Record<string, string>): Promise<number> {
  const asked = request({ host: '127.0.0.1', port, path, method, headers }).end(method === 'POST' ? '{}' : undefined);
  const [response] = await once(asked, 'response');
  response.destroy();
  return response.statusCode;
}

describe('the status page is the operator’s alone', () => {
  test('what it serves is its own files, and its policy lets the page use nothing else', async () => {
    const { admin, gateway } = await start();
    expect(gateway.logs().some(({ statusPage }) => statusPage === `${admin}/`)).toBe(true);
    for (const name of readdirSync(`${root}packages/console/src/page`)) {
      const response = await fetch(`${admin}/${name === 'index.html' ? '' : `page/${name}`}`);
      expect([name, response.status]).toEqual([name, 200]);
      expect(await response.text()).toBe(readFileSync(`${root}packages/console/src/page/${name}`, 'utf8'));
      expect(response.headers.get('content-security-policy')).toContain("default-src 'none'");
      expect(response.headers.get('content-security-policy')).not.toMatch(/unsafe|https?:|\*/);
      expect(response.headers.get('x-content-type-options')).toBe('nosniff');
      const etag = response.headers.get('etag') as string;
      const again = await fetch(response.url, { headers: { 'if-none-match': etag } });
      expect(again.status).toBe(304);
    }
    expect((await fetch(`${admin}/page/..%2f..%2fpackage.json`)).status).toBe(404);
    expect((await fetch(`${admin}/page/constructor`)).status).toBe(404);
  });

  test('another page can neither read nor do anything: not without the header, not with its origin, not under another name', async () => {
    const { gateway, admin, adminPort } = await start();
    const own = { ...letIn(gateway), host: `127.0.0.1:${adminPort}` };
    const foreign = { ...own, origin: 'https://evil.example' };
    const rebound = { ...own, host: `evil.example:${adminPort}`, origin: `http://evil.example:${adminPort}` };
    for (const path of ['/status/about', '/status/events', '/status/play/everything-server']) {
      expect([path, (await fetch(admin + path)).status]).toEqual([path, 403]);
      expect([path, await raw(adminPort, path, 'GET', foreign)]).toEqual([path, 403]);
      expect([path, await raw(adminPort, path, 'GET', rebound)]).toEqual([path, 403]);
    }
    expect((await drain(admin, { 'content-type': 'text/plain' })).status).toBe(403);
    expect(await raw(adminPort, '/status/actions/drain', 'POST', foreign)).toBe(403);
    expect(await raw(adminPort, '/status/actions/drain', 'POST', rebound)).toBe(403);
    const preflight = await fetch(`${admin}/status/actions/drain`, {
      method: 'OPTIONS',
      headers: { origin: 'https://evil.example', 'access-control-request-headers': 'x-gangway-page' },
    });
    expect(preflight.headers.get('access-control-allow-origin')).toBeNull();
    expect((await initialize(gateway.url)).id).toBeTruthy();
    expect(gateway.logs().filter(({ msg }) => msg === 'action on the status page')).toEqual([]);
  });

  test('on an address of the network it is not served where nobody has to show who they are', async () => {
    const { admin, gateway } = await start('--listen.adminHost', '0.0.0.0');
    const response = await fetch(`${admin}/status/about`, { headers: page });
    expect(gateway.logs().some(({ statusPage }) => statusPage !== undefined)).toBe(false); // nor announced
    expect(response.status).toBe(403);
    expect(await response.json()).toMatchObject({ message: expect.stringContaining('loopback') });
    expect((await drain(admin, page)).status).toBe(403);
  });

  test('there, each thing needs a key that names its scope', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'gangway-status-'));
    const file = join(folder, 'keys.json');
    await writeFile(
      file,
      JSON.stringify([
        { name: 'viewer', sha256: digestOfKey('viewer-key'), scopes: ['gangway:status'] },
        { name: 'operator', sha256: digestOfKey('operator-key'), scopes: ['gangway:status', 'gangway:drain'] },
        { name: 'client', sha256: digestOfKey('client-key') },
      ]),
    );
    const { admin, gateway } = await start('--listen.adminHost', '0.0.0.0', '--api-keys-file', file);
    const by = (name: string): Record<string, string> => ({ ...page, authorization: `Bearer ${name}-key` });
    const about = async (headers: Record<string, string>): Promise<number> =>
      (await fetch(`${admin}/status/about`, { headers: { ...headers, origin: admin } })).status;
    expect([await about(page), await about(by('client')), await about(by('viewer'))]).toEqual([401, 403, 200]);
    expect((await drain(admin, by('viewer'))).status).toBe(403);
    expect((await drain(admin, by('operator'))).status).toBe(200);
    expect(await gateway.exited).toEqual({ code: 0, signal: null });
    await rm(folder, { recursive: true });
  });
});

test('an action that cannot be read, or names what is not there, does nothing and says so', async () => {
  const { admin, gateway } = await start();
  const headers = letIn(gateway);
  const ask = async (name: string, body: string) => {
    const response = await fetch(`${admin}/status/actions/${name}`, { method: 'POST', headers, body });
    return [response.status, ((await response.json()) as { message: string }).message];
  };
  expect(await ask('end-session', '{"server":"x","session":"y"}')).toEqual([404, 'The session no longer exists.']);
  expect(await ask('restart-server', '{"server":"constructor"}')).toEqual([404, 'The server does not exist.']);
  expect(await ask('end-session', '{}')).toEqual([404, 'The request does not name a session, a task or a server.']);
  expect(await ask('no-such', '{}')).toEqual([404, 'The action does not exist.']);
  expect(await ask('drain', 'no JSON')).toEqual([400, 'The body of the request is not valid.']);
  expect(await ask('drain', JSON.stringify({ x: 'y'.repeat(10_000) }))).toEqual([
    400,
    'The body of the request is not valid.',
  ]);
});

test('a restart of a server also ends the process that is kept for the next session', async () => {
  const { admin, gateway } = await start('--share', 'all');
  const openAndLeave = async (): Promise<number> => {
    const session = await initialize(gateway.url);
    const { content } = await session.callTool('describe_process');
    await session.delete();
    return JSON.parse(content[0].text).pid;
  };
  const before = await openAndLeave();
  expect(await openAndLeave()).toBe(before);
  const [headers, body] = [letIn(gateway), '{"server":"everything-server"}'];
  const response = await fetch(`${admin}/status/actions/restart-server`, { method: 'POST', headers, body });
  expect(response.status).toBe(200);
  expect(await openAndLeave()).not.toBe(before);
});

test('with --admin-port 0 there is no page, and nothing is noted for one', async () => {
  const gateway = await startGateway({ command: everythingFixture });
  expect(gateway.logs().find(({ msg }) => String(msg).includes('status page'))).toBeUndefined();
  expect((await fetch(`${gateway.baseUrl}/status/about`, { headers: page })).status).toBe(404);
});

test('after a restart with a store in files, the page tells the sessions that no client has used again', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'gangway-waiting-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const [port, adminPort] = [await findFreePort(), await findFreePort()];
  const args = ['--replay.store', `file:${folder}`];
  const startAgain = () => startGateway({ port, adminPort, args, command: everythingFixture });
  const storeOf = async (gateway: Gateway): Promise<object> => {
    const events = await fetch(`http://127.0.0.1:${adminPort}/status/events`, { headers: letIn(gateway) });
    let text = '';
    for await (const chunk of events.body as unknown as AsyncIterable<Uint8Array>) {
      text += Buffer.from(chunk).toString();
      const [, store] = /"store":(\{[^}]*\})/.exec(text) ?? [];
      if (store !== undefined) return JSON.parse(store);
    }
    throw new Error('the page got no state');
  };
  const first = await startAgain();
  const session = await initialize(first.url);
  expect(await storeOf(first)).not.toHaveProperty('waiting');
  await first.stop();
  const next = await startAgain();
  expect(await storeOf(next)).toMatchObject({ kind: 'files', waiting: 1 });
  await session.request('tools/list');
  await waitFor(async () => !('waiting' in (await storeOf(next))), { what: 'the session that is used again' });
});
