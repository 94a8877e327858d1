import { generateKeyPairSync } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { readConfiguration } from '../../src/config/config.ts';
import { schemaUrl } from '../../src/config/tree/json-schema.ts';
import { digestOfKey } from '../../src/core/auth/api-keys.ts';
import { childEnvironment } from '../../src/core/backend/stdio/launch/child-environment.ts';
import { root } from '../support/gateway.ts';
import { startGuardedServer } from '../support/guarded-server.ts';
import { post } from '../support/http-client.ts';
import { startLocalGateway } from '../support/local-gateway.ts';
import { blocksOf } from './page.ts';
import { walk } from './walk.ts';

describe('pages', () => {
  const folder = 'docs/recipes/';
  const pages = [
    ...readdirSync(`${root}${folder}`).map((name) => folder + name),
    ...readdirSync(`${root}examples`, { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && entry.name !== 'servers')
      .map(({ name }) => `examples/${name}/README.md`),
  ];
  const tests = ['test/examples/', 'test/docker/'].flatMap((path) =>
    readdirSync(`${root}${path}`).map((name) => readFileSync(`${root}${path}${name}`, 'utf8')),
  );

  it.each(pages)('%s is followed by a test', (page) => {
    expect(tests.filter((text) => text.includes(`'${page}'`)).length).toBeGreaterThan(0);
  });

  it.each(pages)('%s has JSON that can be read', (page) => {
    const blocks = blocksOf(readFileSync(`${root}${page}`, 'utf8')).filter(({ language }) => language === 'json');
    for (const { text } of blocks) expect(() => JSON.parse(text)).not.toThrow();
  });
});

it('the configuration files of examples and of Kubernetes name the schema, and read no secret from a variable', () => {
  const files = readdirSync(`${root}examples`, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('gangway.json'))
    .map((name) => `examples/${name}`);
  expect(files.length).toBeGreaterThanOrEqual(6);
  for (const file of [...files, 'deploy/kubernetes/gangway.json']) {
    const text = readFileSync(`${root}${file}`, 'utf8');
    expect(JSON.parse(text).$schema, file).toBe(schemaUrl);
    expect(text, file).not.toMatch(/\$\{(?!file:)/);
  }
});

it('no page puts a key or a password into arguments or into the environment of the gateway', () => {
  const texts = ['README.md', ...pagesBelow('docs'), ...pagesBelow('examples')].map(
    (page) => [page, readFileSync(`${root}${page}`, 'utf8')] as const,
  );
  expect(texts.length).toBeGreaterThan(30);
  for (const [page, text] of texts) {
    const commands = blocksOf(text).filter(({ language }) => language === 'sh' || language === 'console');
    for (const { text: command, line } of commands) {
      expect(command, `${page}:${line}`).not.toMatch(/-H ["']Authorization:|--header "Authorization:/);
      expect(command, `${page}:${line}`).not.toMatch(
        /rediss?:\/\/[^\s']*:[^\s']+@.*mcp-gangway|REDIS_URL=|from-literal/,
      );
      expect(command, `${page}:${line}`).not.toMatch(/sed -n 2p|head -1 alice/);
    }
  }
});

/** The program of Open Policy Agent, if this machine has it. */
const findOpa = (): string | undefined =>
  (process.env['PATH'] ?? '')
    .split(delimiter)
    .map((folder) => join(folder, 'opa'))
    .find((path) => existsSync(path));

function pagesBelow(folder: string): string[] {
  return readdirSync(`${root}${folder}`, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md') && !name.includes('decisions/') && !name.includes('node_modules'))
    .map((name) => `${folder}/${name}`);
}

// The others are started here.
it.each(['stdio-in-docker', 'two-hosts-with-redis-and-nginx', 'prometheus-and-grafana'])(
  'examples/%s has a configuration that the gateway accepts',
  (name) => {
    const readFile = () => readFileSync(`${root}examples/${name}/gangway.json`, 'utf8');
    const argv = ['--config', 'gangway.json'];
    expect(readConfiguration({ argv, env: {}, readFile })).toMatchObject({ ok: true, command: 'serve' });
  },
);

it('docs/recipes/sdks.md has a client that calls a tool with a key, and clients.md a configuration', async () => {
  const key = 'k'.repeat(40);
  const { mcpServers } = JSON.parse(
    readFileSync(`${root}${'docs/recipes/clients.md'}`, 'utf8').match(/{\n {2}"mcp[^`]*/)?.[0] ?? '',
  );
  expect(Object.keys(mcpServers)).toEqual(['everything']);
  const gateway = await startLocalGateway({
    env: { GANGWAY_API_KEYS: `alice:sha256:${digestOfKey(key)}` },
    command: [process.execPath, `${root}node_modules/@modelcontextprotocol/server-everything/dist/index.js`],
  });
  await walk({
    page: 'docs/recipes/sdks.md',
    instead: { '127.0.0.1:8080': `127.0.0.1:${gateway.port}` },
    env: { GANGWAY_KEY: key },
  });
});

it('docs/recipes/python-servers.md has commands that the gateway accepts, and names what uvx inherits', () => {
  const page = readFileSync(`${root}${'docs/recipes/python-servers.md'}`, 'utf8');
  const commands = [...page.matchAll(/`mcp-gangway (-- (?:uvx? [^`]+|\/[^`]+)|uvx:[^`]+)`/g)].map(
    ([, command = '']) => command,
  );
  expect(commands.length).toBe(6);
  for (const command of commands) {
    const argv = command.replaceAll("'", '').split(' ');
    expect(readConfiguration({ argv, env: {}, readFile: () => '' }), command).toMatchObject({
      ok: true,
      command: 'serve',
    });
  }
  const shell = { UV_INDEX: 'a', SSL_CERT_FILE: 'b', SSL_CERT_DIR: 'c', HTTPS_PROXY: 'd', PIP_INDEX_URL: 'e' };
  const { PIP_INDEX_URL: _, ...inherited } = shell;
  expect(childEnvironment(shell, {}, 'uvx')).toEqual(inherited);
  expect(childEnvironment(shell, {}, '/path/project/.venv/bin/python')).toEqual({});
});

it('docs/recipes/identity-providers.md has a configuration that tells clients where to log in', async () => {
  const { run } = await walk({ page: 'docs/recipes/identity-providers.md', ports: [8080] });
  const refused = await run('curl --include http://127.0.0.1:8080/mcp');
  expect(refused).toContain('resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp"');
});

it('docs/recipes/container-per-server.md has a command that Docker would take, and whose token is not in it', async () => {
  // In place of Docker, which test/docker has: the arguments are written down, and the server is a process.
  const docker = `
if [ "$1" = run ]; then printf '%s\\n' "$@" > arguments; printenv TICKETS_TOKEN > token; exec node examples/servers/stdio-server.mjs; fi`;
  const { run } = await walk({ page: 'docs/recipes/container-per-server.md', folder: '.', programs: { docker } });
  expect(await run('cat arguments')).toMatch(/^run\n--rm\n--interactive\n(--.*\n)+TICKETS_TOKEN\ndemo-server\n$/);
  expect(await run('cat token')).toBe('abc\n');
});

it('docs/recipes/policy-with-opa.md has a policy that allows, masks, denies and asks', async () => {
  const opa = findOpa();
  const { outputs } = await walk({
    page: 'docs/recipes/policy-with-opa.md',
    ports: [8080, 8181],
    programs: {
      opa: opa === undefined ? `exec node "${root}test/examples/opa-stand-in.mjs" "$@"` : `exec "${opa}" "$@"`,
    },
  });
  expect(outputs.join()).not.toContain('4111111111111111');
});

it('docs/recipes/long-results.md has a result that is cut, and can be read whole', async () => {
  await walk({ page: 'docs/recipes/long-results.md', ports: [8080] });
});

it('docs/recipes/long-calls.md has a call that becomes a task, whose result is there later', async () => {
  await walk({ page: 'docs/recipes/long-calls.md', ports: [8080] });
});

it('docs/recipes/many-tools.md has a view in which a tool is found and called', async () => {
  await walk({ page: 'docs/recipes/many-tools.md', ports: [8080] });
});

it('docs/recipes/team-tokens.md has a view whose servers get only their own tokens', async () => {
  const { outputs } = await walk({ page: 'docs/recipes/team-tokens.md', ports: [8080] });
  expect(outputs[1]?.trim().split('\n')).toHaveLength(2);
});

it('docs/recipes/upstream-oauth.md has a command and two configurations, and shows the challenge that a client gets', async () => {
  const page = readFileSync(`${root}${'docs/recipes/upstream-oauth.md'}`, 'utf8');
  const [, options = ''] = /^mcp-gangway (.+) https:\/\/mcp\.example\.com\/mcp$/m.exec(page) ?? [];
  const server = await startGuardedServer();
  onTestFinished(() => server.close());
  const gateway = await startLocalGateway({ args: [...options.split(' '), server.url] });
  const [, body = ''] = /curl .* -d '(.+)'$/m.exec(page) ?? [];
  const refused = await post(gateway.url, JSON.parse(body));
  const [, shown = ''] = /^www-authenticate: (.+)$/m.exec(page) ?? [];
  const challenge = String(refused.headers['www-authenticate']).replace(`:${gateway.port}/`, ':8080/');
  expect([refused.status, challenge]).toEqual([401, shown]);
  expect(faultsOf('docs/recipes/upstream-oauth.md')).toEqual([[], []]);
});

it('docs/recipes/upstream-identity.md has configurations that the gateway accepts', () => {
  expect(faultsOf('docs/recipes/upstream-identity.md')).toEqual([[], [], []]);
});

it('docs/recipes/registry.md has a configuration that the gateway accepts', () => {
  expect(faultsOf('docs/recipes/registry.md')).toEqual([[]]);
});

/** The faults of each configuration of a page, whose references are files with a secret or a key. */
function faultsOf(page: string): unknown[] {
  const { privateKey } = generateKeyPairSync('ed25519');
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' });
  return blocksOf(readFileSync(`${root}${page}`, 'utf8'))
    .filter(({ language }) => language === 'json')
    .map(({ text }) => {
      const readFile = (file: string) => (file === 'gangway.json' ? text : String(key));
      const read = readConfiguration({ argv: ['--config', 'gangway.json', '--host', '127.0.0.1'], env: {}, readFile });
      return read.ok ? [] : read.faults;
    });
}
