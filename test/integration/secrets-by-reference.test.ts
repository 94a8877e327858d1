import { execFile } from 'node:child_process';
import {
  chmodSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { digestOfKey } from '../../src/core/auth/api-keys.ts';
import { everythingFixture, root, startGateway } from '../support/gateway.ts';
import { initialize } from '../support/http-client.ts';
import { findFreePort } from '../support/redis-process.ts';
import { startRedis } from '../support/redis-server.ts';

const run = promisify(execFile);
const program = [process.execPath, `${root}dist/main.js`] as const;

const folderOfSecrets = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'gangway-secrets-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
};

/** Throws in the gateway at SIGWINCH, as an error of the program would. */
const fault = "process.on('SIGWINCH', () => setImmediate(() => { throw new Error('injected fault'); }));";

/** Everything that the operator port answers to an operator. */
async function consoleOf(base: string, key: string): Promise<string> {
  const headers = { authorization: `Bearer ${key}`, 'x-gangway-page': '1', 'content-type': 'application/json' };
  const read = async (path: string, body?: unknown): Promise<string> => {
    const post = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
    const response = await fetch(base + path, { headers, ...post });
    expect(response.status, path).toBeLessThan(500);
    if (path !== '/status/events') return `${JSON.stringify([...response.headers])}\n${await response.text()}`;
    const reader = response.body?.getReader();
    const { value } = (await reader?.read()) ?? {};
    await reader?.cancel();
    return Buffer.from(value ?? []).toString();
  };
  const hello = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'page', version: '1' } };
  const answers = [
    await read('/status/play/local', { jsonrpc: '2.0', id: 1, method: 'initialize', params: hello }),
    await read('/status/play/remote', { jsonrpc: '2.0', id: 1, method: 'initialize', params: hello }),
    await read('/status/actions/restart-server', { server: 'local' }),
    await read('/status/actions/end-session', { server: 'local', session: 'none' }),
  ];
  for (const path of ['/', '/status/about', '/status/history', '/status/events', '/metrics', '/healthz', '/readyz'])
    answers.push(await read(path));
  expect(answers.join('\n')).toContain('"remote"');
  return answers.join('\n');
}

test('keys, the URL of Redis, state keys and headers from files are nowhere else, not even in a crash', async () => {
  const folder = folderOfSecrets();
  const at = (name: string, text: string): string => {
    writeFileSync(join(folder, name), `${text}\n`, { mode: 0o600 });
    return join(folder, name);
  };
  const password = 'CANARY-redis-7f3a91';
  const stateKey = 'CANARY-state-key-0123456789-0123456789';
  const token = 'CANARY-token-55aa';
  await using redis = await startRedis({ args: ['--requirepass', password] });
  const { host } = new URL(redis.url);
  const [command, ...args] = everythingFixture;
  const config = at(
    'gangway.json',
    JSON.stringify({
      auth: { apiKeysFile: join(folder, 'keys.json') },
      cluster: {
        redis: `\${file:${at('redis', `redis://:${password}@${host}`)}}`,
        stateKeys: [`\${file:${at('state', stateKey)}}`],
      },
      mcpServers: {
        local: { command, args, env: { TOKEN: `\${file:${at('token', token)}}` } },
        remote: { url: 'http://127.0.0.1:9/mcp', headers: { Authorization: `Bearer \${file:${at('token', token)}}` } },
      },
    }),
  );
  const [file, main] = program;
  const made = await run(file, [main, 'key', 'alice', '--add', join(folder, 'keys.json')]);
  const key = /^Authorization: Bearer (\S+)$/m.exec(made.stdout)?.[1] ?? '';
  expect(key).toMatch(/^mcpgw_/);
  expect(statSync(join(folder, 'keys.json')).mode & 0o777).toBe(0o600);
  expect(readFileSync(join(folder, 'keys.json'), 'utf8')).not.toContain(key);

  const operatorKey = 'CANARY-operator-key-31bc';
  const listed: unknown[] = JSON.parse(readFileSync(join(folder, 'keys.json'), 'utf8'));
  const operator = { name: 'olga', sha256: digestOfKey(operatorKey), scopes: ['gangway:status', 'gangway:sessions'] };
  writeFileSync(join(folder, 'keys.json'), JSON.stringify([...listed, operator]));

  const adminPort = await findFreePort();
  const crashing = ['--require', at('fault.cjs', fault), '--report-on-signal', '--report-directory', folder];
  const gateway = await startGateway({
    args: ['--config', config, '--log-level', 'trace', '--observe.showContents'],
    adminPort,
    env: { NODE_OPTIONS: crashing.join(' ') },
  });
  const session = await initialize(`${gateway.baseUrl}/local/mcp`, { headers: { Authorization: `Bearer ${key}` } });
  expect(session.id).not.toBe('');
  const printed = await run(file, [main, 'config', 'print', '--config', config]);
  const seen = {
    environment: readFileSync(`/proc/${gateway.pid}/environ`, 'utf8'),
    arguments: readFileSync(`/proc/${gateway.pid}/cmdline`, 'utf8'),
    printed: printed.stdout,
    console: await consoleOf(`http://127.0.0.1:${adminPort}`, operatorKey),
  };
  expect(seen.printed).toContain(`"redis": "\${file:${join(folder, 'redis')}}"`);
  await redis.kill(); // the log of lost connections names the server
  process.kill(gateway.pid, 'SIGUSR2');
  const reports = (): string[] => readdirSync(folder).filter((name) => /^report\..*\.json$/.test(name));
  const isComplete = (): boolean =>
    /"environmentVariables"[\s\S]*\}\s*$/.test(readFileSync(join(folder, reports()[0] ?? ''), 'utf8'));
  await expect.poll(() => reports().length === 1 && isComplete(), { timeout: 20_000 }).toBe(true);
  const report = readFileSync(join(folder, reports()[0] ?? ''), 'utf8');
  process.kill(gateway.pid, 'SIGWINCH');
  expect(await gateway.exited).toEqual({ code: 1, signal: null });
  expect(gateway.stderr()).toContain('injected fault');
  const refused = await run(file, [main, '--config', config, '--port', '99999']).catch(({ stderr }) => String(stderr));
  expect(refused).toContain('--port: must be an integer');
  for (const [where, text] of Object.entries({ ...seen, log: gateway.stdout() + gateway.stderr(), report, refused }))
    for (const secret of [password, stateKey, token, key, operatorKey])
      expect(String(text).includes(secret), `${where}`).toBe(false);
});

test('a key file keeps its comments, its permissions and the link to it, and is not changed if it is not valid', async () => {
  const folder = folderOfSecrets();
  const keys = join(folder, 'keys.json');
  const [file, main] = program;
  writeFileSync(keys, `[\n  // the first user\n  {"name": "bob", "sha256": "${'0'.repeat(64)}"}, // last\n]\n`);
  chmodSync(keys, 0o640);
  const link = join(folder, 'link.json');
  symlinkSync(keys, link);
  await run(file, [main, 'key', 'alice', '--add', link]);
  expect([statSync(keys).mode & 0o777, lstatSync(link).isSymbolicLink()]).toEqual([0o640, true]);
  const text = readFileSync(keys, 'utf8');
  expect(text).toContain('// the first user');
  expect(text.match(/"name"/g)).toHaveLength(2);
  const checked = await run(file, [main, 'check', '--config-only', '--api-keys-file', keys, '--', 'x']);
  expect(checked.stdout).toContain('The configuration is valid: 1 server.');
  writeFileSync(keys, '{"no": "list"}');
  await expect(run(file, [main, 'key', 'carol', '--add', keys])).rejects.toThrow(/The key was not added/);
  expect(readFileSync(keys, 'utf8')).toBe('{"no": "list"}');
});

test('keys that are added at the same time are all in the file', async () => {
  const keys = join(folderOfSecrets(), 'keys.json');
  const [file, main] = program;
  const names = ['alice', 'bob', 'carol', 'dave', 'erin', 'frank'];
  await Promise.all(names.map((name) => run(file, [main, 'key', name, '--add', keys])));
  const listed: { name: string }[] = JSON.parse(readFileSync(keys, 'utf8'));
  expect(listed.map(({ name }) => name).sort()).toEqual(names);
});

test('included servers are served, and a change of them is a reload', async () => {
  const folder = folderOfSecrets();
  const [command, ...args] = everythingFixture;
  const writeServers = (file: string, ...names: string[]): void =>
    writeFileSync(
      join(folder, file),
      JSON.stringify({ servers: Object.fromEntries(names.map((name) => [name, { command, args }])) }),
    );
  writeFileSync(join(folder, 'gangway.json'), '{ "include": ["a.json", "b.jsonc"] } // no server of its own');
  writeServers('a.json', 'one');
  writeServers('b.jsonc', 'two');
  const gateway = await startGateway({ args: ['--config', join(folder, 'gangway.json')] });
  expect((await initialize(`${gateway.baseUrl}/two/mcp`)).id).not.toBe('');
  writeServers('b.jsonc', 'two', 'three');
  await expect
    .poll(() => gateway.logs().some(({ msg }) => msg === 'reloaded the configuration'), { timeout: 20_000 })
    .toBe(true);
  expect((await initialize(`${gateway.baseUrl}/three/mcp`)).id).not.toBe('');
});

test('the completion script of bash completes options', async () => {
  const [file, main] = program;
  const { stdout: script } = await run(file, [main, 'completion', 'bash']);
  const ask = `COMP_WORDS=(mcp-gangway --timeouts.d); COMP_CWORD=1; _mcp_gangway; echo "\${COMPREPLY[@]}"`;
  const { stdout } = await run('bash', ['-c', `${script}\n${ask}`]);
  expect(stdout.trim()).toBe('--timeouts.drain');
});
