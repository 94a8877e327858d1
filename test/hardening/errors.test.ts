import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { allReasons, type Reason } from '../../src/core/protocol/faults.ts';
import { makeDpopClient } from '../support/dpop-client.ts';
import { everythingFixture, root } from '../support/gateway.ts';
import { initialize, open, post } from '../support/http-client.ts';
import { answerWith, type Issuer, startIssuer, usualAudience } from '../support/issuer.ts';
import { type LocalGateway, startLocalGateway } from '../support/local-gateway.ts';
import { callModern } from '../support/modern-client.ts';
import { initializeRequest } from '../support/old-client.ts';
import { startUsedRedis } from '../support/used-redis.ts';
import { waitFor } from '../support/wait-for.ts';
import { refusedHandshake, webSocketUrlOf } from '../support/websocket-client.ts';
import { disclosing, elsewhere, expectFromCatalogue, provoked } from './error-reasons.ts';
import { connectRaw, requestText, sendRaw } from './raw-http.ts';
import { openRecorded, type RecordedSession, withRecorder } from './recorder.ts';
import { alice, startForUsers } from './users.ts';

describe('[S15] an error says what the catalogue says, and nothing of the inside', () => {
  let gateway: LocalGateway;
  let session: RecordedSession;
  beforeAll(async () => {
    gateway = await startLocalGateway(
      withRecorder('--limits.request.body', '300000B', '--limits.session.requests', '1'),
    );
    session = await openRecorded(gateway.url);
  });
  afterAll(async () => void (await gateway?.stop()));

  const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}';
  const json = 'Content-Type: application/json';
  const modern = 'MCP-Protocol-Version: 2026-07-28';
  const envelope =
    '{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}';
  const modernCall = (method: string) => `{"jsonrpc":"2.0","id":1,"method":"${method}","params":{"_meta":${envelope}}}`;

  /** First line, headers, body; `$` stands for the session's id. A POST to `/mcp` where no first line is given. */
  const requests: readonly [Reason, string, readonly string[], string][] = [
    ['not_json', '', [json, 'Mcp-Session-Id: $'], '{'],
    ['not_json_rpc', '', [json, 'Mcp-Session-Id: $'], '{"canary":1}'],
    ['bad_id', '', [json, 'Mcp-Session-Id: $'], '{"jsonrpc":"2.0","id":1.5,"method":"canary"}'],
    ['duplicate_key', '', [json], '{"jsonrpc":"2.0","id":1,"id":1,"method":"canary"}'],
    ['too_deep', '', [json], '['.repeat(200)],
    ['too_many_members', '', [json], `{${Array.from({ length: 5_000 }, (_, n) => `"canary${n}":0`).join()}}`],
    ['batch_not_allowed', '', [json, 'Mcp-Session-Id: $'], `[${ping}]`],
    ['empty_batch', '', [json, 'Mcp-Session-Id: $'], '[]'],
    ['batch_too_large', '', [json, 'Mcp-Session-Id: $'], `[${`${ping},`.repeat(200)}${ping}]`],
    ['body_too_large', '', [json], ' '.repeat(300_001)],
    ['encoded_body', '', [json, 'Content-Encoding: canary'], ping],
    ['bad_content_type', '', ['Content-Type: text/canary'], ping],
    ['not_acceptable', '', [json, 'Accept: text/canary', 'Mcp-Session-Id: $'], ping],
    ['duplicate_header', '', [json, 'Mcp-Name: canary', 'Mcp-Name: canary'], ping],
    ['origin_not_allowed', '', [json, 'Origin: https://canary.example'], ping],
    ['host_not_allowed', 'POST /mcp HTTP/1.1', ['Host: canary.example', json], ping],
    ['bad_host', 'POST /mcp HTTP/1.1', ['Host: canary@x', json], ping],
    ['unsupported_version', '', [json, 'Mcp-Session-Id: $', 'MCP-Protocol-Version: canary'], ping],
    ['bad_envelope', '', [json, modern, 'Mcp-Method: tools/list'], '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'],
    ['header_mismatch', '', [json, modern, 'Mcp-Method: canary'], modernCall('tools/list')],
    [
      'version_not_served',
      '',
      [json, 'MCP-Protocol-Version: 2099-01-01', 'Mcp-Method: tools/list'],
      modernCall('tools/list').replace('2026-07-28', '2099-01-01'),
    ],
    ['method_removed', '', [json, modern, 'Mcp-Method: ping'], modernCall('ping')],
    ['modern_batch', '', [json, modern], `[${modernCall('tools/list')}]`],
    ['post_only', 'GET /mcp HTTP/1.1', [modern, 'Accept: text/event-stream'], ''],
    ['bad_http', 'POST /mcp HTTP/1.1', ['Host: localhost', 'Content-Length: canary'], ''],
    ['headers_too_large', '', [`X-Canary: ${'x'.repeat(20_000)}`], ''],
    ['bad_expectation', '', [json, 'Expect: canary'], ping],
    ['bad_target', 'POST http://canary.example/mcp HTTP/1.1', ['Host: localhost', json], ping],
    ['method_not_allowed', 'PUT /mcp HTTP/1.1', [], ''],
    ['wrong_method', 'PUT /healthz HTTP/1.1', [], ''],
    ['only_a_stream', 'POST /sse HTTP/1.1', [json], ping],
    ['only_messages', 'GET /messages HTTP/1.1', [], ''],
    ['no_such_path', 'GET /canary HTTP/1.1', [], ''],
    ['websocket_required', 'GET /ws HTTP/1.1', [], ''],
    [
      'bad_handshake',
      'GET /ws HTTP/1.1',
      ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Key: canary'],
      '',
    ],
    ['session_required', '', [json], ping],
    ['unknown_session', '', [json, 'Mcp-Session-Id: canary'], ping],
    ['unknown_token', 'POST /messages?token=canary HTTP/1.1', [json], ping],
    [
      'already_initialized',
      '',
      [json, 'Mcp-Session-Id: $'],
      '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}',
    ],
    [
      'bad_event_id',
      'GET /mcp HTTP/1.1',
      ['Mcp-Session-Id: $', 'Accept: text/event-stream', 'Last-Event-ID: canary'],
      '',
    ],
    [
      'unknown_event_id',
      'GET /mcp HTTP/1.1',
      ['Mcp-Session-Id: $', 'Accept: text/event-stream', 'Last-Event-ID: 9.1-1'],
      '',
    ],
  ];

  it.each(requests)('%s', async (reason, first, headers, body) => {
    const lines = headers.map((line) => line.replace('$', session.id));
    const all = [
      ...(lines.some((line) => line.startsWith('Host:')) ? [] : ['Host: localhost']),
      ...(lines.some((line) => line.startsWith('Accept:')) ? [] : ['Accept: application/json, text/event-stream']),
      ...(body === '' ? [] : [`Content-Length: ${body.length}`]),
      ...lines,
    ];
    const answer = await sendRaw(gateway.port, requestText(first || 'POST /mcp HTTP/1.1', all, body));
    expect(expectFromCatalogue(answer.json.error, answer.status)).toBe(reason);
    expect([...answer.headers].filter(([name]) => /^(?:server|x-powered-by|via)$/.test(name))).toEqual([]);
    expect(answer.raw).not.toMatch(/canary|\/tmp\/|node:/i);
  });
});

describe('[S15] an error of a server or of Redis', () => {
  const initializeBody = {
    jsonrpc: '2.0',
    id: 0,
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } },
  };
  const program = (text: string) => ({ command: process.execPath, args: ['-e', text], env: { CANARY: 'canary' } });
  const answers =
    'const say = (id) => console.log(JSON.stringify({ jsonrpc: "2.0", id, result: { protocolVersion: "2025-11-25", capabilities: {}, serverInfo: { name: "x", version: "1" } } }));';
  const reading = `${answers} require("readline").createInterface({ input: process.stdin }).on("line", (line) => { const { id, method } = JSON.parse(line);`;

  it('that is not there, cannot be reached, is silent, or fails at the start or later', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'gangway-errors-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const file = join(folder, 'canary.json');
    const mcpServers = {
      missing: { command: '/no/such/canary' },
      crashing: program('throw new Error("canary")'),
      silent: { ...program('setInterval(() => undefined, 1000)'), timeouts: { start: '500ms' } },
      wrong: program(
        `${reading} if (method === "initialize") say(id); else if (id !== undefined) console.log(JSON.stringify({ jsonrpc: "2.0", id, canary: 1 })); });`,
      ),
      away: { url: 'tcp://127.0.0.1:1', timeouts: { start: '500ms' } },
      nowhere: { url: 'http://canary.invalid/mcp', transport: 'http', timeouts: { start: '500ms' } },
      dying: program(
        `${reading} if (method === "initialize") say(id); else if (id !== undefined) throw new Error("canary"); });`,
      ),
      long: program(
        `${reading} if (method === "initialize") say(id); else if (id !== undefined) console.log("canary".repeat(12e6)); });`,
      ),
    };
    await writeFile(file, JSON.stringify({ mcpServers }));
    const gateway = await startLocalGateway({ args: ['--config', file] });
    const reasonOf = async (name: string) => {
      const answer = await post(`${gateway.baseUrl}/${name}/mcp`, initializeBody);
      return expectFromCatalogue(answer.json.error, answer.status);
    };
    expect(await Promise.all(['missing', 'crashing', 'silent', 'away', 'nowhere'].map(reasonOf))).toEqual([
      'server_start_failed',
      'server_start_failed',
      'server_start_timeout',
      expect.stringMatching(/^server_start_(?:failed|timeout)$/),
      expect.stringMatching(/^server_start_(?:failed|timeout)$/),
    ]);
    const lateReasonOf = async (name: string) => {
      const session = await initialize(`${gateway.baseUrl}/${name}/mcp`);
      const answer = await session.request('tools/call', { name: 'x' });
      return expectFromCatalogue(answer.messages.find(({ error }) => error)?.error, answer.status);
    };
    expect(await Promise.all(['dying', 'long', 'wrong'].map(lateReasonOf))).toEqual([
      'server_exited',
      'line_too_long',
      'bad_response',
    ]);
  });

  it('Redis that is away', async () => {
    const redis = await startUsedRedis();
    onTestFinished(() => redis.stop());
    const gateway = await startLocalGateway(withRecorder('--redis', redis.url, '--cluster.lease', '2s'));
    const session = await openRecorded(gateway.url);
    await redis.kill();
    const headers = { 'Mcp-Session-Id': session.id.replace(/^./, (c) => (c === 'a' ? 'b' : 'a')) };
    const answer = await post(gateway.url, { jsonrpc: '2.0', id: 1, method: 'ping' }, headers);
    expect(expectFromCatalogue(answer.json.error, answer.status)).toBe('store_unavailable');
    const ready = await (await open(`${gateway.baseUrl}/readyz`, { method: 'GET' })).answer();
    expect(ready.text).not.toMatch(disclosing);
  });
});

describe('[S15] an error of authentication', () => {
  const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
  let issuer: Issuer;
  let away: Issuer;
  let gateway: LocalGateway;
  beforeAll(async () => {
    [issuer, away] = [await startIssuer(), await startIssuer()];
    away.instead.set('/keys', answerWith(500));
    const tokens = [
      '--auth.oauth.issuers',
      issuer.url,
      '--auth.oauth.issuers',
      away.url,
      '--public-url',
      'https://mcp.example.com',
    ];
    const proxy = ['--auth.proxy.userHeader', 'x-user', '--auth.proxy.addresses', '10.0.0.0/8'];
    const args = [...tokens, ...proxy, '--defaults.scopes.required', 'use'];
    gateway = await startLocalGateway({ args, command: everythingFixture });
  });
  afterAll(async () => {
    await gateway?.stop();
    await Promise.all([issuer.close(), away.close()]);
  });
  const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });
  const withoutNonce = async () => {
    const client = await makeDpopClient();
    const token = await issuer.token({ claims: { cnf: { jkt: client.thumbprint } } });
    return { Authorization: `DPoP ${token}`, DPoP: await client.prove(token, 'POST', usualAudience) };
  };

  const refusals: readonly [Reason, string, () => Promise<Record<string, string>>][] = [
    ['credentials_required', '', async () => ({})],
    ['credentials_invalid', '', async () => bearer('canary')],
    ['dpop_nonce_required', '', () => withoutNonce()],
    ['credentials_in_query', '?access_token=canary', async () => ({})],
    ['untrusted_proxy', '', async () => ({ 'X-User': 'canary' })],
    ['insufficient_scope', '', async () => bearer(await issuer.token({ claims: { scope: 'canary' } }))],
    ['token_not_checked', '', async () => bearer(await away.token({ claims: { scope: 'use' } }))],
  ];
  it.each(refusals)('%s', async (reason, query, headers) => {
    const answer = await post(gateway.url + query, ping, await headers());
    expect(expectFromCatalogue(answer.json.error, answer.status)).toBe(reason);
    expect(JSON.stringify(answer.headers)).not.toMatch(/canary|127\.0\.0\.1/);
  });

  it('credentials_expired', async () => {
    // Clocks may differ by 30 s, so that this token is good for three more seconds.
    const exp = Math.floor(Date.now() / 1_000) - 27;
    const headers = bearer(await issuer.token({ claims: { scope: 'use', exp } }));
    const session = await initialize(gateway.url, { headers });
    const call = { ...ping, method: 'tools/call', params: { name: 'slow', arguments: { ms: 60_000 } } };
    const answer = await (await session.send(call, { Accept: 'application/json' })).answer();
    expect(expectFromCatalogue(answer.json.error, answer.status)).toBe('credentials_expired');
  });
});

describe('[S15] an error of a limit', () => {
  const initializeBody = initializeRequest('2025-11-25');
  const limits: readonly [Reason, readonly string[]][] = [
    ['quota_sessions', ['--limits.user.sessions', '1']],
    ['quota_processes', ['--limits.user.processes', '1']],
    ['quota_starts', ['--limits.user.startsPerMinute', '1']],
    ['too_many_sessions', ['--max-sessions', '1', '--limits.user.sessions', '5']],
    ['too_many_starts', ['--limits.total.startsPerMinute', '1']],
  ];
  it.each(limits)('%s', async (reason, args) => {
    const gateway = await startForUsers(args);
    const answers = [await post(gateway.url, initializeBody, alice), await post(gateway.url, initializeBody, alice)];
    const refused = answers.find(({ status }) => status !== 200);
    expect(expectFromCatalogue(refused?.json.error, refused?.status ?? 0)).toBe(reason);
  });

  it('quota_requests', async () => {
    const gateway = await startForUsers(['--limits.user.requestsPerSecond', '1']);
    const answer = await waitFor(
      async () => {
        const tried = await post(gateway.url, { jsonrpc: '2.0', id: 1, method: 'ping' }, alice);
        return tried.status === 429 && tried;
      },
      { what: 'more requests than in ten seconds' },
    );
    expect(expectFromCatalogue(answer.json.error, answer.status)).toBe('quota_requests');
  });

  it('quota_streams', async () => {
    const gateway = await startForUsers(['--limits.user.streams', '1']);
    const stream = await (await initialize(gateway.url, { headers: alice })).getStream();
    const answer = await post(gateway.url, initializeBody, alice);
    expect(expectFromCatalogue(answer.json.error, answer.status)).toBe('quota_streams');
    stream.drop();
  });

  it.each([
    ['quota_bytes', ['--limits.user.inFlight', '60000B']],
    // By default, one user may have half of all bytes, and so is refused first.
    ['gateway_busy', ['--limits.total.inFlight', '60000B', '--limits.user.inFlight', '1MiB']],
  ])('%s', async (reason, limits) => {
    const gateway = await startForUsers([...limits, '--limits.request.body', '60000B']);
    const upload = await connectRaw(gateway.port);
    const lines = ['Host: 127.0.0.1', `Authorization: ${alice.Authorization}`, 'Content-Type: application/json'];
    upload.write(['POST /mcp HTTP/1.1', ...lines, 'Content-Length: 60000', '', '{'].join('\r\n'));
    const answer = await waitFor(
      async () => {
        const tried = await post(gateway.url, initializeBody, alice);
        return tried.status !== 200 && tried;
      },
      { what: 'the upload' },
    );
    expect(expectFromCatalogue(answer.json.error, answer.status)).toBe(reason);
    upload.drop();
  });
});

describe('[S15] an error of an endpoint that is asked in the wrong way', () => {
  const stream = { method: 'GET', headers: { Accept: 'text/event-stream' } };

  it('sessionless_post_only', async () => {
    const gateway = await startLocalGateway(withRecorder('--defaults.sessionless', 'serve'));
    const answer = await (await open(gateway.url, stream)).answer();
    expect(expectFromCatalogue(answer.json.error, answer.status)).toBe('sessionless_post_only');
  });

  it('modern_response, missing_capability and subprotocol_required', async () => {
    const gateway = await startLocalGateway({ command: everythingFixture });
    const response = { jsonrpc: '2.0', id: 1, result: { canary: 1 } };
    const answer = await post(gateway.url, response, { 'MCP-Protocol-Version': '2026-07-28' });
    expect(expectFromCatalogue(answer.json.error, answer.status)).toBe('modern_response');
    const unable = await callModern(gateway.url, 'test_elicitation');
    expect(expectFromCatalogue(unable.json.error, unable.status)).toBe('missing_capability');
    const refused = await refusedHandshake(webSocketUrlOf(gateway.url), { protocols: ['canary'] });
    expect(expectFromCatalogue(refused.json.error, refused.status)).toBe('subprotocol_required');
  });
});

it.each(Object.entries(elsewhere))('[S15] test/%s.test.ts has what is not provoked here', async (name, reasons) => {
  const text = await readFile(`${root}test/${name}.test.ts`, 'utf8');
  expect(reasons.filter((reason) => !new RegExp(`\\b${reason}\\b`).test(text))).toEqual([]);
});

it('[S15] every reason of the catalogue is provoked here, or said to be elsewhere', () => {
  const named = Object.values(elsewhere).flat();
  expect(named.filter((reason) => provoked.has(reason))).toEqual([]);
  expect([...provoked, ...named].toSorted()).toEqual(allReasons.toSorted());
});
