import { expect, test } from 'vitest';
import { describeSharing } from '../../../src/app/access/exposure.ts';
import type { ServerUrls } from '../../../src/app/addresses/server-urls.ts';
import { renderBanner } from '../../../src/app/commands/banner.ts';

const at = (server: string, rest: Partial<ServerUrls> = {}): ServerUrls => ({
  server,
  url: `http://127.0.0.1:8080/${server}/mcp`,
  era: 'legacy',
  ...rest,
});
const two = [at('files'), at('git')];
const readyOf = (banner: string): string => /^Ready:\n((?: .*\n)+)/.exec(banner)?.[1] ?? '';

test('of several servers it says that they were not tried, and what tries them', () => {
  expect(readyOf(renderBanner(two, { needsKey: false, file: 'gangway.json' })).split('\n')).toEqual([
    '  files  http://127.0.0.1:8080/files/mcp',
    '  git    http://127.0.0.1:8080/git/mcp',
    '  The servers were not checked. To check them: mcp-gangway check --config gangway.json',
    '',
  ]);
});

test('a server has one line with all its endpoints', () => {
  const url = 'https://mcp.example.com/tools/mcp';
  const [sse, ws] = ['https://mcp.example.com/tools/sse', 'wss://mcp.example.com/tools/ws'];
  const urls = [at('files', { url, sse, ws, named: 'https://mcp.example.com/tools/files/mcp' })];
  const banner = renderBanner(urls, { needsKey: false, localUrl: 'http://127.0.0.1:8080' });
  expect(banner.split('\n').slice(0, 3)).toEqual([
    'Listening on http://127.0.0.1:8080 for the proxy',
    'Ready:',
    `  files  ${url}  (also /tools/files/mcp, HTTP+SSE: /tools/sse, WebSocket: /tools/ws)`,
  ]);
});

test('a file whose name a shell would split is quoted', () => {
  const banner = renderBanner(two, { needsKey: false, file: "my servers' list.json" });
  expect(banner).toContain(`check --config "my servers' list.json"\n`);
});

test('a single server, which is tried at the start, gets no such line, of a file or not', () => {
  for (const file of ['gangway.json', undefined])
    expect(renderBanner([at('files')], { needsKey: false, file })).not.toContain('Not tried');
});

test('servers that are known not to work stand apart, and the line is of the others', () => {
  const failure = 'The command of the server was not found.';
  const [one, other] = [at('files'), at('git', { failure })];
  const banner = renderBanner([one, other], { needsKey: false, file: 'gangway.json' });
  expect(readyOf(banner)).toMatch(/^ {2}files .*\n {2}The servers were not checked\. /);
  expect(banner).toContain(`Not ready:\n  git    ${other.url}\n         ${failure}\n`);
  const failing = [at('files', { failure }), other];
  expect(renderBanner(failing, { needsKey: false, file: 'gangway.json' })).not.toMatch(/Ready:\n|Not tried|Try it/);
});

test('where clients need a key the line that tries it has a place for one', () => {
  expect(renderBanner(two, { needsKey: true })).toContain("-H 'Authorization: Bearer KEY'");
  expect(renderBanner(two, { needsKey: false })).not.toContain('Bearer');
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
  [['auto'], 'users', /^Each user has separate server processes/],
  [['auto'], 'local', /^All clients on this machine count as one user.*--share session$/],
  [['auto'], 'unknown', /^Anyone can be a client/],
  [['session'], 'users', /do not share server processes \(--share session\)/],
  [['all'], 'unknown', /^All clients share server processes, regardless of their user/],
  [['auto', 'all'], 'users', /^Which clients share processes depends/],
] as const)('it says in one line who shares processes: %j, %s', (shares, known, line) => {
  const sharing = describeSharing(
    shares.map((share) => ({ share })),
    known,
  );
  expect(sharing).toMatch(line);
  expect(renderBanner([at('files')], { needsKey: false, sharing })).toContain(`\nProcesses: ${sharing}\n`);
});
