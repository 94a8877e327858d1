import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Gateway, root, startGateway } from '../support/gateway.ts';
import { type Answer, open } from '../support/http-client.ts';
import { waitForDescendants } from '../support/processes.ts';
import { requestText, sendRaw } from './raw-http.ts';
import { openRecorded, type RecordedSession, withRecorder } from './recorder.ts';

const jsonAndSse = 'application/json, text/event-stream';
const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}';

/** One running gateway and what is asked of it. */
function useGateway(args: readonly string[] = [], env: Readonly<Record<string, string>> = {}) {
  let gateway: Gateway;
  let session: RecordedSession;
  beforeAll(async () => {
    gateway = await startGateway({ ...withRecorder(...args), env });
    session = await openRecorded(gateway.url, { headers: { ...(args.includes('--allow-host') && allowedHost) } });
  });
  afterAll(async () => void (await gateway?.stop()));

  /** POST, GET and DELETE with these headers; the first two in the session, the last without, so that it lives on. */
  const sendAll = async (headers: Record<string, string>): Promise<Answer[]> => {
    const inSession = { 'Mcp-Session-Id': session.id, ...headers };
    const posted = open(gateway.url, {
      headers: { 'Content-Type': 'application/json', Accept: jsonAndSse, ...inSession },
      body: ping,
    });
    const got = await open(gateway.url, { method: 'GET', headers: { Accept: 'text/event-stream', ...inSession } });
    if (got.status === 200) got.drop();
    const getAnswer =
      got.status === 200 ? { ...got, text: '', json: undefined, events: [], messages: [] } : await got.answer();
    const deleted = await open(gateway.url, { method: 'DELETE', headers });
    return [await (await posted).answer(), getAnswer, await deleted.answer()];
  };
  const statusesOf = async (headers: Record<string, string>) => (await sendAll(headers)).map(({ status }) => status);

  return {
    get port() {
      return gateway.port;
    },
    get gateway() {
      return gateway;
    },
    async expectAllowed(headers: Record<string, string>) {
      expect(await statusesOf(headers)).toEqual([200, 200, 400]);
      expect(await session.lines()).toEqual([ping]);
    },
    async expectRefused(headers: Record<string, string>, reason: string) {
      const json = { jsonrpc: '2.0', id: null, error: { code: -32000, message: expect.any(String), data: { reason } } };
      const answers = await sendAll(headers);
      expect(answers.map((answer) => ({ status: answer.status, json: answer.json }))).toEqual(
        [1, 2, 3].map(() => ({ status: 403, json })),
      );
      for (const answer of answers) expect(answer.headers['access-control-allow-origin']).toBeUndefined();
      expect(await session.lines()).toEqual([]);
    },
    /** A Host that is no host name may be refused as bad HTTP too (RFC 9112, section 3.2); it is never served. */
    async expectMalformed(headers: Record<string, string>) {
      for (const status of await statusesOf(headers)) expect([400, 403]).toContain(status);
      expect(await session.lines()).toEqual([]);
    },
    expectNothingForwarded: async () => expect(await session.lines()).toEqual([]),
  };
}

/** The environment of a gateway that `startGateway` would bind to 127.0.0.1. Servers do not get this variable. */
const onAllAddresses = { NODE_OPTIONS: `--import=${root}test/hardening/on-all-addresses.mjs` };

const allowedHost = { Host: 'mcp.example.com' };

/** Origins that are no local web page, however they are written. */
const foreignOrigins = [
  'https://evil.example',
  'http://evil.example',
  'http://192.168.1.10',
  'http://10.0.0.1:8080',
  'http://0.0.0.0',
  'http://128.0.0.1',
  'http://[::1].evil',
  'http://[::1]evil',
  'http://[::2]',
  'http://[::]',
  'http://[fe80::1]',
  'http://localhost.evil',
  'http://localhost.evil.example',
  'http://localhost.',
  'http://127.0.0.1.evil.example',
  'http://127.0.0.1.nip.io',
  'http://evil-localhost',
  'http://evillocalhost',
  'http://localhost-evil',
  'http://evil.example#localhost',
  'http://evil.example?localhost',
  'http://evil.example/localhost',
  'http://evil.example\\localhost',
  'http://localhost@evil.example',
  'http://localhost:80@evil.example',
  'http://user@localhost',
  'http://user:password@localhost',
  'http://@localhost',
  'http://localhost:99999',
  'http://localhost:-1',
  'http://localhost:80:80',
  'http://localhost:8080x',
  'http://localhost:',
  'http://localhost/',
  'http://localhost/path',
  'http://localhost, http://evil.example',
  'http://evil.example, http://localhost',
  'http://localhost http://evil.example',
  'http:localhost',
  'http:/localhost',
  'http//localhost',
  '//localhost',
  'localhost',
  'localhost:8080',
  '127.0.0.1',
  'http://',
  'http://:80',
  'file://',
  'file:///etc/passwd',
  'data:text/html,localhost',
  'about:blank',
  'null',
  'NULL',
  'undefined',
  '*',
  ' ',
  'http://lOcAlHoSt.evil',
  'http://loca1host',
  'http://%6cocalhost',
  'http://localhost%00.evil',
  'http://xn--localhost-0a.evil',
];

/** Hosts that a browser was led to by a foreign name, or that are written to look local. */
const foreignHosts = [
  'evil.example',
  'evil.example:8080',
  'localhost.evil',
  'localhost.evil.example:8080',
  'localhost.',
  'localhost.:8080',
  '127.0.0.1.evil.example',
  '127.0.0.1.nip.io',
  '127.0.0.1.',
  'evil-localhost',
  '0.0.0.0',
  '192.168.1.10',
  '128.0.0.1',
  '[::2]',
  '[::]',
  'EVIL.EXAMPLE',
];

const malformedHosts = [
  '[::1].evil',
  '[::1]evil',
  '[::1]:80:80',
  '[::1',
  '::1',
  'user@localhost',
  'localhost@evil.example',
  'localhost/evil',
  'localhost?evil',
  'localhost#evil',
  'localhost, evil.example',
  'evil.example, localhost',
  'localhost evil.example',
  'localhost:evil',
  'localhost:80:80',
  'localhost:999999',
  'http://localhost',
  'localhost\\evil',
  'local%68ost',
  ' ',
  '*',
  '__proto__',
];

describe('bound to loopback, by default', () => {
  const local = useGateway();

  it.each([
    'http://localhost',
    'http://localhost:3000',
    'https://localhost:8443',
    'http://127.0.0.1',
    'http://127.0.0.1:6274',
    'http://127.8.9.10',
    'http://[::1]',
    'http://[::1]:8080',
    'HTTP://LOCALHOST:3000',
    'Http://LocalHost',
  ])('[S05] the Origin %s is allowed', async (origin) => {
    await local.expectAllowed({ Origin: origin });
  });

  it('[S05] no Origin is allowed: it is not a web page', async () => {
    await local.expectAllowed({});
  });

  it.each(foreignOrigins)('[B18] [S05] [A02] [R2.02] the Origin %s: 403', async (origin) => {
    await local.expectRefused({ Origin: origin }, 'origin_not_allowed');
  });

  it.each([
    ...['localhost', 'localhost:8080', 'LOCALHOST', 'LocalHost:1', '127.0.0.1', '127.0.0.1:65535', '127.8.9.10'],
    ...['[::1]', '[::1]:8080'],
  ])('[S05] the Host %s is allowed', async (host) => {
    await local.expectAllowed({ Host: host });
  });

  it.each(foreignHosts)('[B18] [S05] [A02] [R2.03] the Host %s: 403', async (host) => {
    await local.expectRefused({ Host: host }, 'host_not_allowed');
  });

  it.each(malformedHosts)('[B18] [S05] [R2.03] the Host %j is none: refused', async (host) => {
    await local.expectMalformed({ Host: host });
  });

  it('[S05] [A02] a local Origin does not help a foreign Host, nor the other way round', async () => {
    await local.expectRefused({ Host: 'evil.example', Origin: 'http://localhost' }, 'host_not_allowed');
    await local.expectRefused({ Host: 'localhost', Origin: 'http://evil.example' }, 'origin_not_allowed');
    await local.expectRefused({ Host: 'evil.example', Origin: 'http://evil.example' }, 'host_not_allowed');
  });

  it('[S05] headers that a proxy sets do not stand for Host or Origin', async () => {
    await local.expectRefused(
      { Host: 'evil.example', 'X-Forwarded-Host': 'localhost', Forwarded: 'host=localhost' },
      'host_not_allowed',
    );
    await local.expectAllowed({ 'X-Forwarded-Host': 'evil.example' });
  });

  it.each([
    ['Host', ['Host: localhost', 'Host: evil.example']],
    ['Host, the foreign one first', ['Host: evil.example', 'Host: localhost']],
    ['Host, both local', ['Host: localhost', 'Host: localhost']],
    ['Host in another case', ['Host: localhost', 'HOST: evil.example']],
    ['Origin', ['Host: localhost', 'Origin: http://localhost', 'Origin: http://evil.example']],
    ['Origin, the foreign one first', ['Host: localhost', 'Origin: http://evil.example', 'Origin: http://localhost']],
    ['Origin, both local', ['Host: localhost', 'Origin: http://localhost', 'origin: http://localhost']],
  ])('[B18] [S05] two of %s: 400', async (_, headers) => {
    const type = ['Content-Type: application/json', `Content-Length: ${ping.length}`];
    for (const first of ['POST /mcp HTTP/1.1', 'GET /mcp HTTP/1.1', 'DELETE /mcp HTTP/1.1']) {
      const isPost = first.startsWith('POST');
      const { status } = await sendRaw(
        local.port,
        requestText(first, [...headers, ...(isPost ? type : [])], isPost ? ping : ''),
      );
      expect(status).toBe(400);
    }
    await local.expectNothingForwarded();
  });

  it('[S05] the method does not matter: OPTIONS of a foreign page gets 403 and no permission', async () => {
    const headers = { Origin: 'https://evil.example', 'Access-Control-Request-Method': 'POST' };
    const answer = await (await open(local.gateway.url, { method: 'OPTIONS', headers })).answer();
    expect(answer.status).toBe(403);
    expect(Object.keys(answer.headers).filter((name) => name.startsWith('access-control-'))).toEqual([]);
  });

  it.each(['/healthz', '/readyz'])(
    '[S05] %s does not ask for Host: probes use addresses and names of their own',
    async (path) => {
      for (const host of ['evil.example', '10.1.2.3:8080', 'gangway.svc.cluster.local']) {
        const answer = await (
          await open(`${local.gateway.baseUrl}${path}`, { method: 'GET', headers: { Host: host } })
        ).answer();
        expect(answer.status).toBe(200);
        expect(answer.text).not.toContain(host);
      }
    },
  );
});

describe('bound to loopback, with origins and hosts of its own', () => {
  const configured = useGateway([
    ...[
      '--allow-origin',
      'https://App.Example.com',
      '--allow-origin',
      'http://intranet:8080',
      '--allow-origin',
      'chrome-extension://abc',
    ],
    ...['--allow-host', 'mcp.example.com', '--allow-host', 'only.example.com:8443', '--allow-host', '[fd00::1]'],
  ]);
  const Host = 'localhost';

  it.each([
    'https://app.example.com',
    'https://app.example.com:443',
    'HTTPS://APP.EXAMPLE.COM',
    'http://intranet:8080',
    'chrome-extension://abc',
    'http://localhost:5173',
    'http://[::1]',
  ])('[S05] the Origin %s is allowed', async (origin) => {
    await configured.expectAllowed({ Host, Origin: origin });
  });

  it.each([
    'http://app.example.com',
    'https://app.example.com:8443',
    'https://app.example.com.evil',
    'https://evil-app.example.com',
    'https://sub.app.example.com',
    'https://example.com',
    'https://app.example.com@evil.example',
    'https://user@app.example.com',
    'https://app.example.com/',
    'https://app.example.com.',
    'http://intranet',
    'http://intranet:80801',
    'chrome-extension://abcd',
    'chrome-extension://ABC.evil',
    'null',
  ])('[B18] [S05] the Origin %s: 403', async (origin) => {
    await configured.expectRefused({ Host, Origin: origin }, 'origin_not_allowed');
  });

  it.each([
    ...[
      'mcp.example.com',
      'mcp.example.com:8080',
      'MCP.Example.COM',
      'only.example.com:8443',
      '[fd00::1]',
      '[FD00::1]:8080',
    ],
    ...['localhost', '127.0.0.1:8080', '[::1]'],
  ])('[S05] the Host %s is allowed', async (host) => {
    await configured.expectAllowed({ Host: host });
  });

  it.each([
    ...[
      'only.example.com',
      'only.example.com:8444',
      'mcp.example.com.evil',
      'evil-mcp.example.com',
      'x.mcp.example.com',
    ],
    ...['example.com', 'mcp.example.com.', '[fd00::2]', 'evil.example'],
  ])('[B18] [S05] the Host %s: 403', async (host) => {
    await configured.expectRefused({ Host: host }, 'host_not_allowed');
  });
});

describe('bound to all addresses, by default', () => {
  const unguarded = useGateway([], onAllAddresses);

  it.each(['localhost', '127.0.0.1', 'mcp.example.com', 'gangway:8080', '[::1]', '10.0.0.7'])(
    'any Host is served: %s',
    async (host) => {
      await unguarded.expectAllowed({ Host: host });
    },
  );

  it.each([
    'http://localhost',
    'http://127.0.0.1:8080',
    'http://[::1]',
    'https://evil.example',
    'http://0.0.0.0',
    'null',
  ])('[B18] [S05] [A02] no Origin is, local ones neither: %s: 403', async (origin) => {
    await unguarded.expectRefused({ Origin: origin }, 'origin_not_allowed');
  });
});

describe('bound to all addresses, with hosts and origins of its own', () => {
  const configured = useGateway(
    ['--allow-host', 'mcp.example.com', '--allow-origin', 'https://app.example.com'],
    onAllAddresses,
  );

  it('[S05] serves those', async () => {
    await configured.expectAllowed({ Host: 'mcp.example.com', Origin: 'https://app.example.com' });
    await configured.expectAllowed({ Host: 'mcp.example.com:443' });
  });

  it.each(['localhost', '127.0.0.1', '[::1]', 'evil.example', 'mcp.example.com.evil', '0.0.0.0'])(
    '[B18] [S05] the Host %s: 403',
    async (host) => {
      await configured.expectRefused({ Host: host }, 'host_not_allowed');
    },
  );

  it.each(['http://localhost', 'http://app.example.com', 'https://mcp.example.com', 'null'])(
    '[B18] [S05] the Origin %s: 403',
    async (origin) => {
      await configured.expectRefused({ ...allowedHost, Origin: origin }, 'origin_not_allowed');
    },
  );

  it('[S05] health paths are exempt from Host', async () => {
    for (const path of ['/healthz', '/readyz']) {
      const answer = await (
        await open(`${configured.gateway.baseUrl}${path}`, { method: 'GET', headers: { Host: '10.0.0.9' } })
      ).answer();
      expect(answer.status).toBe(200);
    }
  });
});

describe('with wildcards, which only the operator can set', () => {
  const wild = useGateway(['--allow-origin', '*', '--allow-host', '*'], onAllAddresses);

  it.each(['https://anything.example', 'null', 'http://localhost'])(
    '[S05] the Origin %s is allowed, with any Host',
    async (origin) => {
      await wild.expectAllowed({ Origin: origin, Host: 'anything.example' });
    },
  );
});

describe('a web page that a browser shows', () => {
  it('[R2.02] [R2.03] [A02] [S05] starts no server with a foreign Origin or Host, whatever else it sends', async () => {
    const gateway = await startGateway(withRecorder());
    const session = await openRecorded(gateway.url);
    const [only] = await waitForDescendants(gateway.pid, 1);
    const body = JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'page', version: '1' } },
    });
    for (const attack of [{ Origin: 'https://evil.example' }, { Origin: 'null' }, { Host: 'evil.example' }]) {
      const headers = { 'Content-Type': 'application/json', Accept: jsonAndSse, ...attack };
      const answer = await (await open(gateway.url, { headers, body })).answer();
      expect(answer.status).toBe(403);
      expect(answer.headers['mcp-session-id']).toBeUndefined();
    }
    expect((await gateway.descendants()).map(({ pid }) => pid)).toEqual([only?.pid]);
    expect(await session.lines()).toEqual([]);
  });

  it('[R2.03] finds the gateway on loopback only', async () => {
    const gateway = await startGateway({ command: [process.execPath, '-e', 'process.stdin.resume()'] });
    expect(gateway.url).toMatch(/^http:\/\/127\.0\.0\.1:/);
    if (process.platform !== 'linux') return;
    // /proc/net/tcp: local address as little-endian hex, state 0A is LISTEN.
    const port = gateway.port.toString(16).toUpperCase().padStart(4, '0');
    const sockets =
      (await readFile(`/proc/${gateway.pid}/net/tcp`, 'utf8')) +
      (await readFile(`/proc/${gateway.pid}/net/tcp6`, 'utf8'));
    const listening = sockets.split('\n').filter((line) => line.includes(`:${port} `) && / 0A /.test(line));
    expect(listening.map((line) => line.trim().split(/\s+/)[1])).toEqual([`0100007F:${port}`]);
  });
});
