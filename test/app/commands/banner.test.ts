import { expect, test } from 'vitest';
import { describeSharing } from '../../../src/app/access/exposure.ts';
import type { ServerUrls } from '../../../src/app/addresses/server-urls.ts';
import { type BannerDetails, programOf, renderBanner } from '../../../src/app/commands/banner.ts';
import { strangersOf } from '../../../src/config/access/authentication-config.ts';
import { readConfiguration } from '../../../src/config/config.ts';

const at = (server: string, rest: Partial<ServerUrls> = {}): ServerUrls => ({
  server,
  url: `http://127.0.0.1:8080/${server}/mcp`,
  era: 'legacy',
  ...rest,
});
const program = 'mcp-gangway';
const two = [at('files'), at('git')];
const linesOf = (urls: readonly ServerUrls[], details: Partial<BannerDetails> = {}): string[] =>
  renderBanner(urls, { program, needsKey: false, ...details }).split('\n');

test('of a single server it is four lines: the URL, the status page, the sessions, and a command', () => {
  const url = 'https://mcp.example.com/tools/mcp';
  const [sse, ws] = ['https://mcp.example.com/tools/sse', 'wss://mcp.example.com/tools/ws'];
  const urls = [at('files', { url, sse, ws, named: 'https://mcp.example.com/tools/files/mcp' })];
  const statusPage = 'http://127.0.0.1:9464/#secret';
  expect(linesOf(urls, { statusPage, sessions: 'kept in Redis.', file: 'gangway.json' })).toEqual([
    `Ready: ${url}  (also /tools/files/mcp, HTTP+SSE: /tools/sse, WebSocket: /tools/ws)`,
    `Status page: ${statusPage}`,
    'Sessions: kept in Redis.',
    `Try it: mcp-gangway check ${url}`,
    '',
  ]);
});

test('of several servers it says that they were not tried, and what tries them', () => {
  expect(linesOf(two, { file: 'gangway.json', localUrl: 'http://127.0.0.1:8080' })).toEqual([
    'Listening on http://127.0.0.1:8080 for the proxy',
    'Ready:',
    '  files  http://127.0.0.1:8080/files/mcp',
    '  git    http://127.0.0.1:8080/git/mcp',
    'Check the servers: mcp-gangway check --config gangway.json',
    '',
  ]);
});

test('servers by the name of a package have a line, which does not say that a missing package is installed', () => {
  const urls = [
    at('files', { package: 'files 1.0.0 from npm' }),
    at('git', { package: 'git (not installed yet) from PyPI' }),
  ];
  const details = { packagesFolder: '/packages' };
  expect(linesOf(urls, details)).toContain(
    'Packages: files: files 1.0.0 from npm, git: git (not installed yet) from PyPI; in /packages',
  );
  expect(linesOf(urls.slice(0, 1), details)).toContain('Packages: files 1.0.0 from npm; in /packages');
});

test('a file whose name a shell would split is quoted', () => {
  expect(linesOf(two, { file: "my servers' list.json" }).join('\n')).toContain(
    `check --config "my servers' list.json"\n`,
  );
});

test('servers that are known not to work stand apart, and the line is of the others', () => {
  const failure = 'The command of the server was not found.';
  const [one, other] = [at('files'), at('git', { failure })];
  expect(linesOf([one, other], { file: 'gangway.json' })).toEqual([
    'Ready:',
    `  files  ${one.url}`,
    'Not ready:',
    `  git    ${other.url}`,
    `         ${failure}`,
    'Check the servers: mcp-gangway check --config gangway.json',
    '',
  ]);
  for (const failing of [[at('files', { failure }), other], [other]])
    expect(linesOf(failing, { file: 'gangway.json' }).join('\n')).not.toMatch(/Ready:|Check the servers|Try it/);
});

test('where clients need a key, it has the command that makes one for the page, and the header of the check', () => {
  const lines = linesOf([at('files')], { needsKey: true, statusPage: 'https://x/', keysFile: 'k s.json', ca: 'c.pem' });
  expect(lines).toEqual([
    'Ready: http://127.0.0.1:8080/files/mcp',
    "Status page: https://x/  (to make its key: mcp-gangway key NAME --scope gangway:status --expires 90d --add 'k s.json')",
    "Try it: NODE_EXTRA_CA_CERTS=c.pem mcp-gangway check http://127.0.0.1:8080/files/mcp --header 'Authorization: Bearer KEY'",
    '',
  ]);
});

test('without a key file, it says which scope the page needs, since the command for a key would have no effect', () => {
  const [, page] = linesOf([at('files')], { needsKey: true, statusPage: 'https://x/' });
  expect(page).toBe(
    'Status page: https://x/  (needs the scope gangway:status, in an access token or in a key of --api-keys-file)',
  );
});

test.each([
  ['/srv/app/dist/main.js', '/srv/app', 'node dist/main.js'],
  ['/srv/app/dist/main.js', '/srv', 'node app/dist/main.js'],
  ['/app/dist/main.js', '/srv', 'mcp-gangway'],
  ['/usr/bin/mcp-gangway', '/usr', 'mcp-gangway'],
])('%s, started in %s, is started again with %s', (script, folder, command) => {
  expect(programOf(script, folder)).toBe(command);
});

test.each([
  [['upstream'], /^Users log in to the server, and each user has separate sessions there \(auth: upstream\)\.$/],
  [['upstream', 'gateway'], /^Which clients share processes depends on the server \(share, auth\)\.$/],
] as const)('of servers with auth %j it does not say that clients count as one user', (auths, line) => {
  const servers = auths.map((auth) => ({ share: 'auto', auth }) as const);
  expect(describeSharing(servers, 'local')).toMatch(line);
});

test.each([
  ['all', /^Each client session has its own session at the server\.$/],
  ['user', /^Each client session has its own session at the server\.$/],
] as const)('of servers at a URL with --share %s it does not say that clients share a process', (share, line) => {
  const address = { transport: 'auto', url: new URL('http://127.0.0.1:1/mcp') };
  const remote = { share, address } as unknown as Parameters<typeof describeSharing>[0][number];
  expect(describeSharing([remote], 'local')).toMatch(line);
  expect(describeSharing([remote, { share }], 'local')).toMatch(/^Which clients share .* At a URL, /);
});

test.each([
  [['auto'], 'users', /^Users share no server processes\.$/],
  [['user'], 'users', /^Each user has separate server processes\. Sessions of one user share them\.$/],
  [['auto'], 'local', /^Clients on this machine count as one user \(--share session separates them\)\.$/],
  [['auto'], 'unknown', /^They share only processes of modern servers, because anyone can be a client\.$/],
  [['request'], 'users', /^Sessions do not share server processes \(--share request\)\.$/],
  [['session'], 'users', /^Sessions share only processes of modern servers \(--share session\)\.$/],
  [['all'], 'unknown', /^All clients share server processes, regardless of their user/],
  [['auto', 'all'], 'users', /^Which clients share processes depends/],
] as const)('it says in one line who shares processes: %j, %s', (shares, known, line) => {
  const servers = shares.map((share) => ({ share }));
  expect(describeSharing(servers, known)).toMatch(line);
});

const legacy = { share: 'auto', era: 'legacy' } as const;

test.each([
  [legacy, 'anyone', 'They share no server processes, because anyone can be a client.'],
  [
    legacy,
    'other instances',
    'They share no server processes, because clients of other instances can be of other users.',
  ],
  [{ ...legacy, share: 'session' }, 'anyone', 'Sessions share no server processes (--share session).'],
] as const)('where users are not known, it says why they share none: %j, %s', (server, strangers, line) => {
  expect(describeSharing([server], 'unknown', true, strangers)).toBe(line);
});

test.each([
  [['--redis', 'redis://127.0.0.1'], 'other instances'],
  [['--redis', 'redis://127.0.0.1', '--host', '0.0.0.0'], 'other instances'],
  [['--redis', 'redis://127.0.0.1', '--public-url', 'https://mcp.example.com'], 'anyone'],
  [['--allow-host', 'mcp.example.com'], 'anyone'],
  [['--allow-host', 'localhost'], undefined],
  [['--host', '0.0.0.0', '--allow-host', 'mcp.example.com'], undefined],
] as const)('with %j, strangers are %s', (argv, strangers) => {
  const read = readConfiguration({ argv: [...argv, '--', 'node'], env: {}, readFile: () => '' });
  expect(read.ok && 'config' in read && strangersOf(read.config)).toBe(strangers);
});
