// node bench/identity.mjs [calls]
//
// What token exchange costs a call: the same gateway, before the same server, once with a static header and once with a token
// for each of 100 users (RFC 8693). Both gateways check the same access tokens of their clients. The rounds alternate between
// the two. Prints the CPU time of the gateway for each call, the median time of a call, and the ratios of exchange to header.
// --lifetime: the lifetime of the exchanged tokens in seconds; each renewal is part of the cost. BENCH_OURS=<file> measures
// another build.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { numberOf, readCommand, requireBuild } from './lib/command.mjs';
import { publicUrl } from './lib/issuer.mjs';
import { cpuSeconds } from './lib/proc.mjs';
import { startRemotes } from './lib/remote.mjs';
import { freePort } from './lib/wait.mjs';
import { ourProgram } from './targets.mjs';

const { values, positionals } = readCommand(import.meta, { lifetime: { type: 'string' } }, { allowPositionals: true });
const calls = numberOf('The number of calls', positionals[0] ?? '10000');
const lifetimeS = numberOf('--lifetime', values.lifetime ?? '30');
const rounds = 5;
const userCount = 100;
const kinds = ['header', 'exchange'];
const print = (text) => process.stdout.write(`${text}\n`);
const median = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)];

requireBuild(ourProgram);
const folder = mkdtempSync(path.join(tmpdir(), 'gangway-identity-'));
const remotes = await startRemotes(['http']);
const authorization = await startAuthorizationServer();
const gateways = {};
const agent = new http.Agent({ keepAlive: true, maxSockets: 16 });
try {
  for (const kind of kinds) gateways[kind] = await startGateway(kind);
  for (const kind of kinds) await openSessions(gateways[kind]);
  for (const kind of kinds) await callAll(gateways[kind], calls); // the code has to be compiled first
  const results = { header: [], exchange: [] };
  for (let round = 0; round < rounds; round++) {
    for (const kind of round % 2 === 0 ? kinds : kinds.toReversed())
      results[kind].push(await measure(gateways[kind], Math.ceil(calls / rounds)));
  }
  for (const kind of kinds) {
    const cpu = median(results[kind].map(({ cpuUs }) => cpuUs));
    const time = median(results[kind].map(({ medianMs }) => medianMs));
    print(`${kind.padEnd(9)} ${cpu.toFixed(0).padStart(5)} µs CPU for each call, ${time.toFixed(2)} ms median`);
  }
  const ratioOf = (key) =>
    median(results.exchange.map((each, round) => each[key] / results.header[round][key])).toFixed(3);
  print(`ratio     ${ratioOf('cpuUs')} CPU, ${ratioOf('medianMs')} median time (pairs of ${rounds} rounds)`);
  print(`exchanges ${authorization.exchanges()}, tokens of ${lifetimeS} s, ${userCount} users`);
} finally {
  agent.destroy();
  for (const { child } of Object.values(gateways)) {
    child.kill();
    await once(child, 'exit');
  }
  authorization.stop();
  await remotes.stop();
  rmSync(folder, { recursive: true });
}

/** The keys of the users' tokens for the gateway, and the endpoint that exchanges them. */
async function startAuthorizationServer() {
  const { publicKey, privateKey } = await generateKeyPair('RS256');
  const keys = [{ ...(await exportJWK(publicKey)), kid: 'bench', alg: 'RS256', use: 'sig' }];
  let exchanges = 0;
  const answers = {
    '/keys': () => ({ keys }),
    '/token': () => ({
      access_token: `${'t'.repeat(800)}${++exchanges}`,
      token_type: 'Bearer',
      expires_in: lifetimeS,
      issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    }),
  };
  const server = http.createServer((request, response) => {
    request.resume();
    const answer = answers[request.url] ?? (() => ({ issuer: url, jwks_uri: `${url}/keys` }));
    response.setHeader('content-type', 'application/json');
    request.on('end', () => response.end(JSON.stringify(answer())));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${server.address().port}`;
  const tokens = await Promise.all(
    Array.from({ length: userCount }, (_, n) =>
      new SignJWT({ scope: 'openid mcp:use files:read', client_id: 'bench', email: `user-${n}@example.com` })
        .setProtectedHeader({ alg: 'RS256', kid: 'bench', typ: 'at+jwt' })
        .setIssuer(url)
        .setAudience(`${publicUrl}/crm/mcp`)
        .setSubject(`user-${n}`)
        .setIssuedAt()
        .setExpirationTime('12h')
        .sign(privateKey),
    ),
  );
  return {
    url,
    tokens,
    exchanges: () => exchanges,
    stop() {
      server.closeAllConnections();
      server.close();
    },
  };
}

async function startGateway(kind) {
  const identity = {
    grant: 'token_exchange',
    tokenUrl: `${authorization.url}/token`,
    clientId: 'gateway',
    clientSecret: 'of this benchmark alone',
  };
  const own = kind === 'exchange' ? { identity } : { headers: { Authorization: `Bearer ${'t'.repeat(800)}` } };
  const config = path.join(folder, `${kind}.json`);
  const mcpServers = {
    crm: { url: remotes.urls.http, era: 'legacy', transport: 'http', ...own },
    other: { command: 'x' },
  };
  writeFileSync(config, JSON.stringify({ mcpServers }));
  const port = await freePort();
  const options = ['--port', `${port}`, '--admin-port', '0', '--log-level', 'error', '--config', config];
  const oauth = ['--auth.oauth.issuers', authorization.url, '--public-url', publicUrl];
  const child = spawn(process.execPath, [ourProgram, ...options, ...oauth], { stdio: ['ignore', 'ignore', 'inherit'] });
  return { child, port, sessions: [] };
}

/** Opens a session for each user. */
async function openSessions(gateway) {
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'bench', version: '1' } };
  for (const token of authorization.tokens) {
    const headers = { authorization: `Bearer ${token}` };
    const body = { jsonrpc: '2.0', id: 0, method: 'initialize', params };
    let answer;
    for (let attempt = 0; attempt < 200 && answer === undefined; attempt++) {
      answer = await post(gateway, headers, body).catch(() => new Promise((resolve) => setTimeout(resolve, 50)));
    }
    if (answer?.status !== 200) throw new Error(`initialize was answered with ${answer?.status}: ${answer?.text}`);
    const session = {
      ...headers,
      'mcp-session-id': answer.headers['mcp-session-id'],
      'mcp-protocol-version': '2025-11-25',
    };
    await post(gateway, session, { jsonrpc: '2.0', method: 'notifications/initialized' });
    gateway.sessions.push(session);
  }
}

/** Makes calls of all users in turn, 16 at a time. Returns the times in milliseconds. */
async function callAll(gateway, count) {
  const times = [];
  let next = 0;
  const work = async () => {
    while (next < count) {
      const id = ++next;
      const params = { name: 'echo', arguments: { message: 'x'.repeat(100), text: 'x'.repeat(100) } };
      const startedAt = performance.now();
      const session = gateway.sessions[id % userCount];
      const { status, text } = await post(gateway, session, { jsonrpc: '2.0', id, method: 'tools/call', params });
      if (status !== 200 || !text.includes('"result"')) throw new Error(`a call was answered with ${status}: ${text}`);
      times.push(performance.now() - startedAt);
    }
  };
  await Promise.all(Array.from({ length: 16 }, work));
  return times;
}

async function measure(gateway, count) {
  const before = cpuSeconds(gateway.child.pid);
  const times = await callAll(gateway, count);
  return { cpuUs: ((cpuSeconds(gateway.child.pid) - before) * 1e6) / count, medianMs: median(times) };
}

function post({ port }, headers, message) {
  const body = JSON.stringify(message);
  const all = {
    ...headers,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'content-length': Buffer.byteLength(body),
  };
  return new Promise((resolve, reject) => {
    const request = http.request({ host: '127.0.0.1', port, path: '/crm/mcp', method: 'POST', headers: all, agent });
    request.on('error', reject);
    request.on('response', async (response) => {
      const text = Buffer.concat(await response.toArray()).toString();
      resolve({ status: response.statusCode, headers: response.headers, text });
    });
    request.end(body);
  });
}
