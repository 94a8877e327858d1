import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request as requestByTls } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { digestOfKey } from '../../src/core/auth/api-keys.ts';
import { everythingFixture, type Gateway, startGateway } from '../support/gateway.ts';
import { initialize } from '../support/http-client.ts';
import { scrape } from '../support/metrics.ts';
import { findFreePort } from '../support/redis-process.ts';
import { certificateFolder } from '../support/server-certificate.ts';
import { wordOf } from '../support/status-page.ts';
import { requestText, sendRaw } from './raw-http.ts';

const [clientKey, operatorKey] = ['key-of-a-client-0123456789-0123456789', 'key-of-an-operator-0123456789-01234567'];
const folder = mkdtempSync(join(tmpdir(), 'gangway-door-'));
const keysFile = join(folder, 'keys.json');
beforeAll(() => {
  const scopes = ['gangway:status', 'gangway:sessions', 'gangway:drain'];
  const operator = { name: 'operator', sha256: digestOfKey(operatorKey), scopes };
  writeFileSync(keysFile, JSON.stringify([{ name: 'alice', sha256: digestOfKey(clientKey) }, operator]));
});
afterAll(() => rmSync(folder, { recursive: true }));

async function start(...args: readonly string[]) {
  const adminPort = await findFreePort();
  const gateway = await startGateway({ adminPort, args, command: everythingFixture });
  return { gateway, adminPort, admin: `http://127.0.0.1:${adminPort}` };
}

/** As a tool of a STDIO server can ask, or a browser that a client controls: everything of the page but its secret. */
async function statuses(admin: string, secret?: string): Promise<number[]> {
  const authorization = secret === undefined ? {} : { authorization: `Bearer ${secret}` };
  const headers = { 'x-gangway-page': '1', 'content-type': 'application/json', ...authorization };
  const ask = async (path: string, options: object = {}): Promise<number> => {
    const response = await fetch(admin + path, { headers, ...options });
    await response.body?.cancel();
    return response.status;
  };
  const body = JSON.stringify({ server: 'everything-server', session: 'x' });
  return [
    await ask('/status/about'),
    await ask('/status/events'),
    await ask('/status/events?server=everything-server'),
    await ask('/status/actions/end-session', { method: 'POST', body }),
    await ask('/status/actions/restart-server', { method: 'POST', body }),
  ];
}

const nobody = [401, 401, 401, 401, 401];
const somebody = [200, 200, 200, 404, 200];

describe('the port for operators on a loopback address', () => {
  it('[S-04] asks for the word of the printed URL where clients need no key', async () => {
    const { gateway, admin } = await start('--observe.showContents');
    const word = wordOf(gateway);
    for (const wrong of [undefined, 'x', word.slice(1)]) expect(await statuses(admin, wrong)).toEqual(nobody);
    expect(await statuses(admin, word)).toEqual(somebody);
    expect(JSON.stringify(gateway.logs())).not.toContain(word);
    const drain = { method: 'POST', headers: { 'x-gangway-page': '1' }, body: '{}' };
    expect((await fetch(`${admin}/status/actions/drain`, drain)).status).toBe(401);
    const play = { method: 'POST', headers: { 'x-gangway-page': '1' }, body: '{}' };
    expect((await fetch(`${admin}/status/play/everything-server`, play)).status).toBe(401);
    expect((await initialize(gateway.url)).id).toBeTruthy();
  });

  it('[S-04] has another word at each start', async () => {
    const [one, other] = [await start(), await start()];
    expect(wordOf(one.gateway)).not.toBe(wordOf(other.gateway));
    expect(await statuses(one.admin, wordOf(other.gateway))).toEqual(nobody);
  });

  it('[S-04] asks for a key that names the scope where clients need one; the key of a client opens nothing', async () => {
    const { gateway, admin } = await start('--observe.showContents', '--api-keys-file', keysFile);
    expect(gateway.stdout()).toContain(`${admin}/  (to make its key: `); // and no word
    expect(await statuses(admin)).toEqual(nobody);
    expect(await statuses(admin, clientKey)).toEqual([403, 403, 403, 403, 403]);
    expect(await statuses(admin, operatorKey)).toEqual(somebody);
  });

  it('[S-04] shows a Prometheus the metrics without a key: they hold nothing of users', async () => {
    const { gateway, adminPort } = await start('--api-keys-file', keysFile);
    const session = await initialize(gateway.url, { headers: { Authorization: `Bearer ${clientKey}` } });
    const { text } = await scrape(adminPort);
    expect(text).toContain('mcp_gangway_sessions');
    for (const own of ['alice', session.id]) expect(text).not.toContain(own);
  });

  it('[S-04] is not there with --listen.adminHost off, as the image has it', async () => {
    const adminPort = await findFreePort();
    const env = { GANGWAY_LISTEN_ADMIN_HOST: 'off' };
    const gateway: Gateway = await startGateway({ adminPort, env, command: everythingFixture });
    expect(gateway.stdout()).not.toContain('Status page');
    await expect(fetch(`http://127.0.0.1:${adminPort}/metrics`)).rejects.toThrow();
    const given = await startGateway({
      adminPort,
      env,
      args: ['--listen.adminHost', '127.0.0.1'],
      command: everythingFixture,
    });
    expect(given.stdout()).toContain('Status page');
  });

  it('[S-04] says that the variable of the image has won over an address in the file', async () => {
    const file = join(folder, 'gangway.json');
    const [command, ...args] = everythingFixture;
    writeFileSync(file, JSON.stringify({ listen: { adminHost: '0.0.0.0' }, mcpServers: { one: { command, args } } }));
    const adminPort = await findFreePort();
    const env = { GANGWAY_LISTEN_ADMIN_HOST: 'off' };
    const gateway = await startGateway({ adminPort, env, args: ['--config', file] });
    expect(gateway.stderr()).toContain(
      'GANGWAY_LISTEN_ADMIN_HOST is off, which is the default in the image and overrides the file',
    );
  });
});

describe('the port for operators on an address of the network', () => {
  const noTls = 'the operator port has no TLS: keys of operators can be read on the network';
  const certificates = certificateFolder();
  afterAll(certificates.remove);

  it('[E-06] warns that keys can be read where it has no TLS, and only where keys are shown', async () => {
    const { gateway } = await start('--listen.adminHost', '0.0.0.0', '--api-keys-file', keysFile);
    const warned = gateway.logs().find(({ msg }) => msg === noTls);
    expect(warned).toMatchObject({ level: 'warn', detail: expect.stringContaining('--tls-cert') });
    const open = await start('--listen.adminHost', '0.0.0.0');
    expect(open.gateway.logs().some(({ msg }) => msg === noTls)).toBe(false);
  });

  it('[E-06] speaks TLS alone, with the certificate of the gateway', async () => {
    const { cert, key, ca } = await certificates.make('own');
    const tls = ['--tls-cert', cert, '--tls-key', key];
    const { gateway, adminPort } = await start('--listen.adminHost', '0.0.0.0', '--api-keys-file', keysFile, ...tls);
    expect(gateway.logs().some(({ msg }) => msg === noTls)).toBe(false);
    const about = (authorization: string): Promise<number | undefined> =>
      new Promise((resolve, reject) => {
        const headers = { 'x-gangway-page': '1', authorization };
        const asked = requestByTls(`https://127.0.0.1:${adminPort}/status/about`, { ca, headers, agent: false });
        asked.on('response', (response) => resolve(response.resume().statusCode)).on('error', reject);
        asked.end();
      });
    expect(await about(`Bearer ${operatorKey}`)).toBe(200);
    expect(await about('Bearer x')).toBe(401);
    const plain = await sendRaw(adminPort, requestText('GET /metrics HTTP/1.1', ['Host: localhost']));
    expect(plain.status).not.toBe(200);
    const local = await start('--api-keys-file', keysFile, ...tls);
    expect((await scrape(local.adminPort)).text).toContain('mcp_gangway_sessions'); // nobody is on the way
  });

  it('[S-18] refuses names of other domains where names are configured, which web pages could rebind', async () => {
    const { adminPort } = await start('--listen.adminHost', '0.0.0.0', '--allow-host', 'mcp.example.com');
    const statusFor = async (host: string): Promise<number> =>
      (await sendRaw(adminPort, requestText('GET /metrics HTTP/1.1', [`Host: ${host}`, 'Connection: close']))).status;
    const allowed = ['10.0.0.7:9464', 'gateway-1:9464', 'localhost', '[::1]:9464', 'mcp.example.com:9464'];
    for (const host of allowed) expect([host, await statusFor(host)]).toEqual([host, 200]);
    for (const host of ['evil.example', 'evil.example:9464', 'mcp.example.com.evil.example'])
      expect([host, await statusFor(host)]).toEqual([host, 403]);
  });
});
