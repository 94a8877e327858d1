import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readConfiguration } from '../../src/config/config.ts';
import type { ConfigurationIssue } from '../../src/config/issues.ts';
import { flagsOf, options, variablesOf } from '../../src/config/options/option-names.ts';
import { configFileVariable } from '../../src/config/sources/environment-variables.ts';
import { leafValue } from '../../src/config/tree/branch.ts';

const flagOf = (path: string): string => flagsOf(path)[0];
const environmentNameOf = (path: string): string => variablesOf(path)[0] ?? '';

interface Given {
  argv?: readonly string[];
  env?: Record<string, string>;
  file?: unknown;
  files?: readonly string[];
}

/** `file` is what `config.json` holds: text, or a value to write as JSON. */
function read({ argv = ['--config', 'config.json'], env = {}, file, files = [] }: Given) {
  const readFile = (path: string) => {
    if (path !== 'config.json' || file === undefined) throw Object.assign(new Error(path), { code: 'ENOENT' });
    return typeof file === 'string' ? file : JSON.stringify(file);
  };
  return readConfiguration({ argv, env, readFile, findCommand: (name) => files.includes(name) });
}

function configOf(given: Given) {
  const result = read(given);
  if (!result.ok) throw new Error(JSON.stringify(result.faults));
  if (!('config' in result)) throw new Error(result.command);
  return result.config;
}

function faultsOf(given: Given): readonly ConfigurationIssue[] {
  const result = read(given);
  return result.ok ? [] : result.faults;
}

/** The object with a member at a path such as `limits.user.sessions`. */
function withMember(tree: Record<string, unknown>, path: string, value: unknown): Record<string, unknown> {
  const [first = '', ...rest] = path.split('.');
  const below = (tree[first] ?? {}) as Record<string, unknown>;
  return { ...tree, [first]: rest.length === 0 ? value : withMember(below, rest.join('.'), value) };
}

const pathsOf = (given: Given) => faultsOf(given).map(({ path }) => path);
const server = (entry: unknown) => ({ mcpServers: { git: entry } });

describe('one server', () => {
  it('has every default', () => {
    const { servers, ...globals } = configOf({ argv: ['--', 'node', 'dist/foo.js', '--port', '9'] });
    expect(servers).toEqual([
      {
        name: 'foo',
        audit: { arguments: [], hide: [] },
        limits: { resultBytes: undefined },
        allowTools: [],
        denyTools: [],
        allowPrompts: [],
        denyPrompts: [],
        tools: {},
        isOnCommandLine: true,
        command: 'node',
        args: ['dist/foo.js', '--port', '9'],
        warm: 0,
        cwd: undefined,
        env: {},
        onExit: 'restore',
        rerun: 'safe',
        hibernateAfterMs: 0,
        packages: 'install',
        era: 'auto',
        share: 'auto',
        affinity: undefined,
        auth: 'gateway',
        poolMax: 1,
        sessionless: 'reject',
        sse: true,
        ws: true,
        transport: 'auto',
        headers: {},
        forwardHeaders: [],
        credentials: {},
        identity: undefined,
        lists: { ttlMs: 0 },
        tasks: { after: '5s' },
        scopes: { required: [], tools: {} },
        timeouts: { startMs: 60_000 },
        probes: { everyMs: 0, required: false },
        tls: { ca: undefined, cert: undefined, key: undefined },
        process: { user: undefined, memoryBytes: undefined },
      },
    ]);
    expect(globals).toMatchObject({
      listen: { host: '127.0.0.1', port: 8080, path: '/mcp', allowedOrigins: [] },
      cluster: { redis: undefined },
    });
  });

  it.each<[string, Given, string[]]>([
    ['words are kept', { argv: ['--', 'a b', 'c d'] }, ['a b', 'c d']],
    ['one string is split', { argv: ['--', `npx -y "a b" 'c'`] }, ['npx', '-y', 'a b', 'c']],
    ['a file of that name is not', { argv: ['--', 'my server'], files: ['my server'] }, ['my server']],
    ['a second -- belongs to the server', { argv: ['--', 'a', '--', 'b'] }, ['a', '--', 'b']],
    ['--help after -- too', { argv: ['--', 'a', '--help'] }, ['a', '--help']],
  ])('%s', (_case, given, words) => {
    const [command, ...args] = words;
    expect(configOf(given).servers).toMatchObject([{ command, args }]);
  });

  it('takes options for itself', () => {
    const argv = ['--warm', '2', '--env', 'A=1,2=3', '--env=B=', '--cwd', '/srv', '--', 'x'];
    expect(configOf({ argv }).servers[0]).toMatchObject({ warm: 2, env: { A: '1,2=3', B: '' }, cwd: '/srv' });
  });
});

describe('commands', () => {
  it.each([
    [['--help'], 'help'],
    [['-h', '--port', 'x'], 'help'],
    [['-v'], 'version'],
    [['--version', '--help'], 'help'],
    [['check', '--', 'x'], 'check'],
    [['check', '--json', '--', 'x'], 'check'],
    [['--port', '1', 'check', '--', 'x'], 'check'],
    [['--', 'check'], 'serve'],
  ])('%j is %s', (argv, command) => {
    expect(read({ argv })).toMatchObject({ ok: true, command });
  });
});

describe('help', () => {
  it.each([
    [['--help'], 'gateway'],
    [['--port', '1', '-h'], 'gateway'],
    [['--help', 'all'], 'all'],
    [['check', '--help'], 'check'],
    [['check', '--json', '-h', '--', 'x'], 'check'],
    [['key', '--help'], 'key'],
    [['--help', 'key'], 'key'],
    [['check', '--help', 'all'], 'all'],
    [['--help', '--', 'all'], 'gateway'],
  ])('%j is on %s', (argv, on) => {
    expect(read({ argv })).toEqual({ ok: true, command: 'help', on });
  });

  it.each([[['--help', 'foo']], [['check', '-h', 'foo']]])('%j names the topics that there are', (argv) => {
    const [fault, ...others] = faultsOf({ argv });
    expect(others).toEqual([]);
    for (const topic of ['all', 'check', 'key']) expect(fault?.message).toContain(`--help ${topic}`);
  });
});

describe('the order of sources', () => {
  const file = {
    listen: { port: 3, allowedHosts: ['file'] },
    limits: { session: { requests: 33 } },
    ...server({ command: 'x' }),
  };
  const env = { GANGWAY_PORT: '2', GANGWAY_TIMEOUTS_DRAIN: '22ms', GANGWAY_ALLOW_HOST: 'one, two', GANGWAY_HOST: '' };

  it('is command line, environment, file, default', () => {
    expect(configOf({ argv: ['--config=config.json', '--port', '1'], env, file })).toMatchObject({
      listen: { port: 1, allowedHosts: ['one', 'two'], host: '127.0.0.1' },
      timeouts: { drainMs: 22 },
      limits: { session: { requests: 33 } },
    });
  });

  it('takes the file from the environment only if the command line names no server', () => {
    const named = { [configFileVariable]: 'config.json' };
    expect(configOf({ argv: [], env: named, file }).listen.port).toBe(3);
    expect(configOf({ argv: ['--', 'x'], env: named, file }).listen.port).toBe(8080);
  });

  it('takes the Redis from REDIS_URL where GANGWAY_REDIS is not set, and as any variable', () => {
    const [own, other] = ['redis://own', 'redis://other'];
    const argv = ['--', 'x'];
    expect(configOf({ argv, env: { REDIS_URL: other } }).cluster.redis).toBe(other);
    expect(configOf({ argv, env: { REDIS_URL: other, GANGWAY_REDIS: '' } }).cluster.redis).toBe(other);
    expect(configOf({ argv, env: { REDIS_URL: other, GANGWAY_REDIS: own } }).cluster.redis).toBe(own);
    expect(configOf({ argv: ['--redis', own, ...argv], env: { REDIS_URL: other } }).cluster.redis).toBe(own);
    expect(configOf({ argv, env: { REDIS_URL: '' } }).cluster.redis).toBeUndefined();
    expect(
      configOf({ env: { REDIS_URL: other }, file: { cluster: { redis: own }, ...server({ command: 'x' }) } }).cluster
        .redis,
    ).toBe(other);
  });

  it('has defaults for what instances share', () => {
    expect(configOf({ argv: ['--', 'x'] })).toMatchObject({
      replay: { store: 'auto' },
      cluster: { prefix: 'gangway', tls: { ca: undefined }, leaseMs: 6_000 },
      derived: {
        storeWaitMs: 6_000,
        redisTimeoutMs: 1_000,
        leaseRenewMs: 2_000,
        leaseMarginMs: 1_000,
        recordTtlMs: 3_600_000,
      },
    });
  });

  it('keeps the record of a session as long as an idle session and its events may live', () => {
    const recordTtlOf = (...argv: string[]) => {
      const { recordTtlMs } = configOf({ argv: [...argv, '--', 'x'] }).derived;
      return recordTtlMs / 60_000;
    };
    expect(recordTtlOf('--session-idle', '10m')).toBe(60);
    expect(recordTtlOf('--session-idle', '3h')).toBe(180);
    expect(recordTtlOf('--replay.maxAge', '2h')).toBe(120);
  });

  it('takes every option from each source, by its path and its short name', () => {
    for (const [path, option] of options) {
      const { kind, default: value } = option;
      if (value === undefined || typeof value === 'object') continue;
      if (path === 'auth.oauth.clientCertificates') continue; // needs a certificate: see test/integration/dpop.test.ts
      const texts: Record<string, string> = {
        'defaults.tasks.after': '7s',
        'observe.logLevel': 'info,store=debug',
        'observe.logFormat': 'pretty',
        'observe.otlpLogs': 'all',
        'listen.host': '::1',
        'listen.adminHost': '::1',
        'listen.serverCards': 'off',
        'cluster.link.host': '::1',
        'cluster.prefix': 'team:x',
        'cluster.lease': '170ms', // the only one of which 70 is too little
        'auth.oauth.dpop': 'require',
        'replay.store': 'file:/x',
        'defaults.onExit': 'end',
        'defaults.rerun': 'hints',
        'defaults.era': 'legacy',
        'defaults.share': 'all',
        'defaults.packages': 'no-scripts',
        'defaults.sessionless': 'serve',
        'defaults.transport': 'auto', // a command ignores the others
        'defaults.auth': 'gateway', // a command ignores `upstream`
      };
      const units: Partial<Record<typeof kind, string>> = { duration: '70ms', size: '70B', integer: '70' };
      const text = texts[path] ?? units[kind] ?? (kind === 'boolean' ? String(!value) : '/x');
      const isNumber = kind === 'integer' || kind === 'duration' || kind === 'size';
      const wanted = isNumber ? Number.parseInt(text, 10) : kind === 'boolean' ? !value : text;
      const large = {
        'limits.request.body': '1B',
        'timeouts.requestIdle': '1ms',
        'timeouts.requestTotal': '24d',
        'auth.proxy.userHeader': 'x-user', // without authentication it cannot be required
        'auth.proxy.addresses': ['10.0.0.1'],
        ...(path === 'auth.oauth.dpop' && {
          'auth.oauth.issuers': ['https://login.example'],
          'listen.publicUrl': 'https://mcp.example',
        }),
        [path]: kind === 'integer' ? Number(text) : kind === 'boolean' ? !value : text,
      };
      const treeOf = (values: object): Record<string, unknown> =>
        Object.entries(values).reduce(
          (tree, [name, each]) => withMember(tree, name, each),
          file as Record<string, unknown>,
        );
      const others = treeOf(Object.fromEntries(Object.entries(large).filter(([name]) => name !== path)));
      const results = [
        ...flagsOf(path).map((flag) =>
          configOf({ argv: ['--config', 'config.json', `${flag}=${text}`], file: others }),
        ),
        ...variablesOf(path).map((name) => configOf({ env: { [name]: text }, file: others })),
        configOf({ file: treeOf(large) }),
      ];
      for (const { servers, ...config } of results)
        expect([path, leafValue({ ...config, defaults: servers[0] }, path, option)]).toEqual([path, wanted]);
    }
  });
});

describe('references', () => {
  const listFolder = (): undefined => undefined;

  it('work in the paths of include', () => {
    const files = new Map([
      ['g.json', '{ "include": ["${DIR:-inc}/a.json"] }'],
      ['inc/a.json', '{ "servers": { "a": { "command": "x" } } }'],
    ]);
    const readFile = (path: string): string => files.get(path) ?? '';
    const result = readConfiguration({ argv: ['--config', 'g.json'], env: {}, readFile, listFolder });
    expect(result).toMatchObject({
      ok: true,
      config: { servers: [{ name: 'a' }] },
      included: ['inc/a.json', 'servers.d'],
    });
  });

  it('work in the API keys of the environment', () => {
    const sha256 = '0a'.repeat(32);
    const readFile = (): string => `bob:sha256:${sha256}\ncarol:sha256:${sha256}\n`;
    const env = { GANGWAY_API_KEYS: `alice:sha256:${sha256},\${file:/keys}` };
    const result = readConfiguration({ argv: ['--', 'x'], env, readFile, listFolder });
    const named = [{ name: 'alice', sha256 }, { name: 'bob', sha256 }, { name: 'carol' }];
    expect(result).toMatchObject({ ok: true, config: { apiKeys: named } });
  });
});

describe('the face for HTTP+SSE', () => {
  const both = { mcpServers: { a: { command: 'x' }, b: { command: 'y', sse: false } } };

  it('is there unless it is turned off, for all or for one', () => {
    const turned = (given: Given) => configOf(given).servers.map(({ sse }) => sse);
    expect(turned({ file: both })).toEqual([true, false]);
    expect(turned({ argv: ['--defaults.sse=false', '--config', 'config.json'], file: both })).toEqual([false, false]);
    expect(turned({ argv: ['--defaults.sse=false', '--', 'x'] })).toEqual([false]);
    expect(turned({ argv: ['--', 'x'], env: { GANGWAY_DEFAULTS_SSE: 'false' } })).toEqual([false]);
  });

  it.each<[Given, string, string]>([
    [{ argv: ['--defaults.sse=1', '--', 'x'] }, '--defaults.sse', 'true or false'],
    [{ argv: ['--defaults.sse=false', '--defaults.sse=false', '--', 'x'] }, '--defaults.sse', 'more than once'],
    [{ argv: ['--', 'x'], env: { GANGWAY_DEFAULTS_SSE: 'no' } }, 'GANGWAY_DEFAULTS_SSE', 'true or false'],
    [{ argv: ['--path', '/sse', '--', 'x'] }, '--path', 'the same path'],
    [{ argv: ['--path', '/messages', '--', 'x'] }, '--path', 'the same path'],
    [{ argv: ['--path', '/messages', '--', 'x'] }, '--path', 'the same path'],
  ])('refuses %j', (given, path, message) => {
    const result = read(given);
    expect(result).toMatchObject({ ok: false, faults: [{ path, message: expect.stringContaining(message) }] });
  });

  it('has no path to collide with where it is turned off', () => {
    expect(configOf({ argv: ['--defaults.sse=false', '--path', '/sse', '--', 'x'] }).listen.path).toBe('/sse');
  });
});

describe('servers of the file', () => {
  it('reads what MCP clients write', () => {
    const file = {
      servers: {
        a: {
          type: 'stdio',
          command: 'npx',
          args: ['-y', '${PKG:-p}'],
          env: { T: '${TOKEN}' },
          autoApprove: ['x'],
          timeout: 9,
        },
        b: { command: 'uvx "b c"', warm: 2, cwd: '${HOME}' },
        c: { command: 'my server' },
        d: { command: 'a b', args: [] },
        e: { disabled: true, url: 'https://x', nonsense: '${UNSET}' },
      },
      inputs: [],
    };
    expect(configOf({ file, env: { TOKEN: 't', HOME: '/h' }, files: ['my server'] }).servers).toMatchObject([
      { name: 'a', command: 'npx', args: ['-y', 'p'], env: { T: 't' } },
      { name: 'b', command: 'uvx', args: ['b c'], warm: 2, cwd: '/h' },
      { name: 'c', command: 'my server', args: [] },
      { name: 'd', command: 'a b', args: [] },
    ]);
  });

  it('takes options for all servers where a server has none, and merges env', () => {
    const file = {
      defaults: { warm: 1 },
      mcpServers: { a: { command: 'a' }, b: { command: 'b', warm: 3, env: { A: 'own' } } },
    };
    expect(
      configOf({ argv: ['--config', 'config.json', '--env', 'A=all', '--env', 'B=all'], file }).servers,
    ).toMatchObject([
      { warm: 1, env: { A: 'all', B: 'all' } },
      { warm: 3, env: { A: 'own', B: 'all' } },
    ]);
  });

  it('begins with a byte order mark or not', () => {
    expect(configOf({ file: `\uFEFF${JSON.stringify(server({ command: 'x' }))}` }).servers).toHaveLength(1);
  });

  it('may have comments and trailing commas, as VS Code writes them', () => {
    const file = '{\n  // the only server\n  "servers": {"a": {"command": "x", "args": ["//", "y",],},}, /* end */\n}';
    expect(configOf({ file }).servers).toMatchObject([{ name: 'a', command: 'x', args: ['//', 'y'] }]);
  });
});

describe('remote servers', () => {
  it('on the command line have an address and the name of their host', () => {
    const argv = [
      '--transport',
      'sse',
      '--header',
      'Authorization: Bearer a:b, c',
      '--header=X-A:1',
      'https://mcp.example/sse?k=1#x',
    ];
    expect(configOf({ argv }).servers).toMatchObject([
      {
        name: 'mcp.example',
        address: { transport: 'sse', url: new URL('https://mcp.example/sse?k=1') },
        headers: { Authorization: 'Bearer a:b, c', 'X-A': '1' },
      },
    ]);
    expect(configOf({ argv: ['unix:///run/git.sock'] }).servers).toMatchObject([
      { name: 'git', address: { transport: 'unix', path: '/run/git.sock' } },
    ]);
  });

  it('in the file may be written as MCP clients do, with secrets from the environment', () => {
    const file = {
      defaults: { headers: { 'X-All': 'all' } },
      mcpServers: {
        a: { type: 'sse', url: '${BASE}/sse', headers: { Authorization: 'Bearer ${TOKEN}' } },
        b: { url: 'http://b', transport: 'sse' },
        c: { url: 'tcp://[::1]:9000' },
        d: { command: 'x' },
      },
    };
    expect(configOf({ file, env: { BASE: 'https://a', TOKEN: 's3cret' } }).servers).toMatchObject([
      { name: 'a', address: { url: new URL('https://a/sse') }, headers: { Authorization: 'Bearer s3cret' } },
      { name: 'b', address: { transport: 'sse' }, headers: { 'X-All': 'all' } },
      { name: 'c', address: { transport: 'tcp', host: '::1', port: 9000 } },
      { name: 'd', command: 'x' },
    ]);
  });

  it('take headers from the environment, one in a line', () => {
    const env = { GANGWAY_HEADER: 'A: 1, 2\nB: 3', GANGWAY_TRANSPORT: 'sse' };
    expect(configOf({ argv: ['http://x'], env }).servers).toMatchObject([{ headers: { A: '1, 2', B: '3' } }]);
  });
});

describe('hibernation', () => {
  it('if asked for for all servers, is that of those that the gateway starts', () => {
    const mcpServers = { a: { url: 'http://a', type: 'sse' }, b: { command: 'b' } };
    expect(configOf({ file: { defaults: { hibernateAfter: '5ms' }, mcpServers } }).servers).toMatchObject([
      { name: 'a', hibernateAfterMs: 0 },
      { name: 'b', hibernateAfterMs: 5 },
    ]);
  });
});

describe('headers of clients', () => {
  it('go on by name, in small letters, and not unless they are named', () => {
    const argv = [
      '--transport',
      'sse',
      '--defaults.forwardHeaders',
      'Authorization',
      '--defaults.forwardHeaders',
      'x-a,X-B',
      'http://x',
    ];
    expect(configOf({ argv }).servers).toMatchObject([{ forwardHeaders: ['authorization', 'x-a', 'x-b'] }]);
    expect(configOf({ argv: ['--transport', 'sse', 'http://x'] }).servers).toMatchObject([{ forwardHeaders: [] }]);
  });

  it('if named for all servers, go to those that can have any', () => {
    const mcpServers = { a: { url: 'http://a', type: 'sse' }, b: { command: 'b' }, c: { url: 'tcp://c:1' } };
    expect(configOf({ file: { defaults: { forwardHeaders: ['X-A'] }, mcpServers } }).servers).toMatchObject([
      { name: 'a', forwardHeaders: ['x-a'] },
      { name: 'b', forwardHeaders: [] },
      { name: 'c', forwardHeaders: [] },
    ]);
  });
});

describe('faults', () => {
  const usage = 'command line';

  it.each<[string, Given, string[]]>([
    ['no server', { argv: [] }, [usage]],
    ['nothing after --', { argv: ['--'] }, ['--']],
    ['blanks after --', { argv: ['--', ' '] }, ['--']],
    ['an unclosed quote', { argv: ['--', 'a "b'] }, ['--']],
    ['two forms', { argv: ['--config', 'config.json', '--', 'x'], file: server({ command: 'x' }) }, [usage]],
    ['a URL and --', { argv: ['tcp://x:1', '--', 'x'] }, [usage]],
    ['two URLs', { argv: ['tcp://x:1', 'tcp://x:2'] }, ['argument 2 (x:2)']],
    ['a command without --', { argv: ['npx', '-y', 'server'] }, ['npx']],
    ['an unknown option', { argv: ['--prot', '--', 'x'] }, ['--prot']],
    ['a short option with a value', { argv: ['-p80', '--', 'x'] }, ['-p']],
    ['no value', { argv: ['--port', '--', 'x'] }, ['--port']],
    ['an option for a value', { argv: ['--port', '--host', '::1', '--', 'x'] }, ['--port']],
    ['an option twice', { argv: ['--port', '1', '--port', '2', '--', 'x'] }, ['--port']],
    ['a variable without =', { argv: ['--env', 'A', '--', 'x'] }, ['--env']],
    ['no file', { argv: ['--config', 'none.json'] }, ['--config']],
    ['a file without a name', { argv: ['--config', ''] }, ['--config', usage]],
    ['not JSON', { file: '{\n"mcpServers": {,}}' }, ['config.json:2:16']],
    ['a key twice', { file: '{"port": 1, // a port\n"port": 2,}' }, ['config.json:2:1']],
    ['a list', { file: [] }, ['config.json']],
    ['no mcpServers', { file: {} }, ['config.json']],
    ['both sections', { file: { servers: {}, mcpServers: {} } }, ['config.json']],
    ['mcpServers a list', { file: { mcpServers: [] } }, ['config.json: mcpServers']],
    ['mcpServers empty', { file: { mcpServers: {} } }, ['config.json: mcpServers']],
    ['all disabled', { file: server({ disabled: true }) }, ['config.json: mcpServers']],
    [
      'disabled a string',
      { file: server({ command: 'x', disabled: 'yes' }) },
      ['config.json: mcpServers.git.disabled'],
    ],
    ['a server a string', { file: server('x') }, ['config.json: mcpServers.git']],
    ['no command', { file: server({}) }, ['config.json: mcpServers.git']],
    ['an empty command', { file: server({ command: ' ' }) }, ['config.json: mcpServers.git.command']],
    [
      'an argument a number',
      { file: server({ command: 'x', args: ['a', 1] }) },
      ['config.json: mcpServers.git.args[1]'],
    ],
    [
      'an unset variable',
      { file: server({ command: 'x', args: ['a', '${N}'] }) },
      ['config.json: mcpServers.git.args[1]'],
    ],
    ['env a number', { file: server({ command: 'x', env: { 'A B': 1 } }) }, ['config.json: mcpServers.git.env["A B"]']],
    ['type sse', { file: server({ type: 'sse' }) }, ['config.json: mcpServers.git.type']],
    ['type http', { file: server({ type: 'http' }) }, ['config.json: mcpServers.git.type']],
    ['an unknown type', { file: server({ type: 'ws', url: 'http://x' }) }, ['config.json: mcpServers.git.type']],
    [
      'type http with another URL',
      { file: server({ type: 'streamable-http', url: 'tcp://x:1' }) },
      ['config.json: mcpServers.git.url'],
    ],
    [
      'type stdio with a url',
      { file: server({ type: 'stdio', url: 'tcp://x:1' }) },
      ['config.json: mcpServers.git.type'],
    ],
    [
      'a url and a command',
      { file: server({ url: 'tcp://x:1', command: 'x', env: {} }) },
      ['config.json: mcpServers.git.command', 'config.json: mcpServers.git.env'],
    ],
    ['a url a number', { file: server({ url: 1 }) }, ['config.json: mcpServers.git.url']],
    [
      'headers without a url',
      { file: server({ command: 'x', headers: { a: 'b' }, transport: 'sse' }) },
      ['config.json: mcpServers.git.headers', 'config.json: mcpServers.git.transport'],
    ],
    [
      'a header with a line break',
      { file: server({ url: 'https://x', type: 'sse', headers: { a: 'b\r\nc: d' } }) },
      ['config.json: mcpServers.git.headers.a'],
    ],
    ['a header without a colon', { argv: ['--header', 'a', '--transport', 'sse', 'http://x'] }, ['--header']],
    ['one path for two things', { argv: ['--path', '/ws', '--', 'x'] }, ['--path']],
    ['the same by a default', { argv: ['--path', '/ws', '--', 'x'] }, ['--path']],
    ['a header twice', { argv: ['--header', 'a: 1', '--header', 'A: 2', 'tcp://x:1'] }, ['--header']],
    ['a header of our own', { argv: ['--header', 'Host: evil', '--transport', 'sse', 'http://x'] }, ['--header']],
    ['a header that mirrors the body', { argv: ['--header', 'Mcp-Param-A: x', 'http://x'] }, ['--header']],
    [
      'one to forward',
      { argv: ['--defaults.forwardHeaders', 'Mcp-Name', 'http://x'] },
      ['--defaults.forwardHeaders[0]'],
    ],
    [
      'a header to forward for a command',
      { argv: ['--defaults.forwardHeaders', 'x-a', '--', 'x'] },
      ['--defaults.forwardHeaders'],
    ],
    ['a header for a command', { argv: ['--header', 'X: y', '--', 'x'] }, ['--header']],
    ['a transport for a command', { argv: ['--transport', 'http', '--', 'x'] }, ['--transport']],
    [
      'another transport than type',
      { file: server({ url: 'http://x', type: 'http', transport: 'sse' }) },
      ['config.json: mcpServers.git.transport'],
    ],
    [
      'a header to forward to a socket',
      { argv: ['--defaults.forwardHeaders', 'x-a', 'tcp://x:1'] },
      ['--defaults.forwardHeaders'],
    ],
    [
      'a header to forward in a server without a url',
      { file: server({ command: 'x', forwardHeaders: ['x-a'] }) },
      ['config.json: mcpServers.git.forwardHeaders'],
    ],
    [
      'a header to forward in a server at a socket',
      { file: server({ url: 'unix:///s', forwardHeaders: ['x-a'] }) },
      ['config.json: mcpServers.git.forwardHeaders'],
    ],
    [
      'hibernation of a server that somebody else runs',
      { file: server({ url: 'http://x', type: 'sse', hibernateAfter: '5ms' }) },
      ['config.json: mcpServers.git.hibernateAfter'],
    ],
    [
      'hibernation of a server whose sessions are not restored',
      { argv: ['--defaults.hibernateAfter', '5ms', '--defaults.onExit', 'end', '--', 'x'] },
      ['--defaults.hibernateAfter'],
    ],
    [
      'a header to forward that is in headers',
      { file: server({ url: 'http://x', type: 'sse', forwardHeaders: ['X-A'], headers: { 'x-a': '1' } }) },
      ['config.json: mcpServers.git.forwardHeaders'],
    ],
    [
      'a header to forward and warm',
      { file: { defaults: { warm: 1 }, ...server({ url: 'http://x', type: 'sse', forwardHeaders: ['x-a'] }) } },
      ['config.json: mcpServers.git.forwardHeaders'],
    ],
    ...['Host', 'Mcp-Session-Id', 'Transfer-Encoding', 'proxy-authorization', 'a b', 'a:b', ''].map(
      (name): [string, Given, string[]] => [
        `a header to forward named ${JSON.stringify(name)}`,
        { file: server({ url: 'http://x', type: 'sse', forwardHeaders: [name] }) },
        ['config.json: mcpServers.git.forwardHeaders[0]'],
      ],
    ),
    ['a certificate without a key', { argv: ['--defaults.tls.cert', 'f', 'tcp://x:1'] }, ['--defaults.tls.cert']],
    ['a modern server on WebSocket', { argv: ['--era', 'modern', 'ws://x:1'] }, ['--era']],
    ['a modern HTTP+SSE server', { argv: ['--era', 'modern', '--transport', 'sse', 'http://x:1'] }, ['--era']],
    ['an era that there is not', { argv: ['--era', 'new', '--', 'x'] }, ['--era']],
    ['a transport that is none', { argv: ['--transport', 'ws', 'http://x:1'] }, ['--transport']],
    ['type nonsense', { file: server({ command: 'x', type: 1 }) }, ['config.json: mcpServers.git.type']],
    ['an unknown key', { file: server({ command: 'x', comand: 1 }) }, ['config.json: mcpServers.git.comand']],
    ['a global key in a server', { file: server({ command: 'x', port: 1 }) }, ['config.json: mcpServers.git.port']],
    ['an unknown key at the top', { file: { prot: 1, ...server({ command: 'x' }) } }, ['config.json: prot']],
    [
      'a bad name',
      { file: { mcpServers: { 'a/b': {} } } },
      ['config.json: mcpServers["a/b"]', 'config.json: mcpServers["a/b"]'],
    ],
    ['a reserved name', { file: { mcpServers: { mcp: { command: 'x' } } } }, ['config.json: mcpServers.mcp']],
    [
      'a fault for all servers once',
      { file: { defaults: { warm: -1 }, mcpServers: { a: { command: 'a' }, b: { command: 'b' } } } },
      ['config.json: defaults.warm'],
    ],
    ['no Redis URL as an option', { argv: ['--redis', 'x', '--', 'x'] }, ['--redis']],
    ['no Redis URL as a variable', { argv: ['--', 'x'], env: { GANGWAY_REDIS: 'x' } }, ['GANGWAY_REDIS']],
    ['no Redis URL by its other name', { argv: ['--', 'x'], env: { REDIS_URL: 'x' } }, ['REDIS_URL']],
    [
      'no Redis URL in the file',
      { file: { cluster: { redis: 'x' }, ...server({ command: 'x' }) } },
      ['config.json: cluster.redis'],
    ],
    ['a Redis prefix with braces', { argv: ['--cluster.prefix', '{a}', '--', 'x'] }, ['--cluster.prefix']],
    ['a wrong pair', { argv: ['--timeouts.requestTotal', '1s', '--', 'x'] }, ['--timeouts.requestTotal']],
  ])('%s', (_case, given, paths) => {
    expect(pathsOf(given)).toEqual(paths);
  });

  it.each<[Record<string, string | number>, string, string]>([
    [{ 'listen.tls.cert': 'cert.pem' }, 'listen.tls.cert', 'listen.tls.key'],
    [{ 'listen.tls.key': 'key.pem' }, 'listen.tls.key', 'listen.tls.cert'],
    [{ 'timeouts.requestTotal': '1s' }, 'timeouts.requestTotal', 'timeouts.requestIdle'],
    [{ 'auth.proxy.scopesHeader': 'x-s' }, 'auth.proxy.scopesHeader', 'auth.proxy.userHeader'],
    [{ 'auth.proxy.userHeader': 'x-u' }, 'auth.proxy.userHeader', 'auth.proxy.addresses'],
  ])('%j is told in the words of the place where it stands', (settings, key, other) => {
    const all = Object.entries(settings);
    const onLine = faultsOf({ argv: [...all.flatMap(([name, value]) => [flagOf(name), String(value)]), '--', 'x'] });
    const env = Object.fromEntries(all.map(([name, value]) => [environmentNameOf(name), String(value)]));
    const nested = all.reduce((tree, [name, value]) => withMember(tree, name, value), {});
    const inFile = faultsOf({ file: { ...nested, ...server({ command: 'x' }) } });
    for (const [faults, path, named, never] of [
      [onLine, flagOf(key), flagOf(other), environmentNameOf(other)],
      [faultsOf({ argv: ['--', 'x'], env }), environmentNameOf(key), environmentNameOf(other), flagOf(other)],
      [inFile, `config.json: ${key}`, other, flagOf(other)],
    ] as const) {
      expect(faults).toMatchObject([{ path, message: expect.stringContaining(named) }]);
      expect(faults[0]?.message).not.toContain(never);
    }
  });

  it.each<[string[], string, Record<string, unknown>, string]>([
    [
      ['--defaults.hibernateAfter', '9ms', '--defaults.onExit', 'end'],
      '--defaults.hibernateAfter and --defaults.onExit end',
      { hibernateAfter: '9ms', onExit: 'end' },
      'hibernateAfter and onExit end',
    ],
  ])('%j of a server is told as %s, and in the file in its words', (argv, onLine, settings, inFile) => {
    expect(faultsOf({ argv: [...argv, '--', 'x'] })[0]?.message).toContain(onLine);
    expect(faultsOf({ file: server({ command: 'x', ...settings }) })[0]?.message).toContain(inFile);
  });

  it.each([
    [['chekc'], 'did you mean check?'],
    [['chekc', '--', 'x'], 'did you mean check?'],
    [['keys', 'alice'], 'did you mean key?'],
    [['help'], 'did you mean --help?'],
    [['npx', 'server'], 'put -- before'],
    [['node', 'x.js'], 'mcp-gangway [options] -- node'],
    [['--port', '1', 'key', 'alice'], 'must be the first word'],
    [['--log-level', 'dbug', '--', 'x'], 'names an unknown level; did you mean debug?'],
    [['--log-level', 'info,stor=debug', '--', 'x'], 'item 2 names an unknown part; did you mean store?'],
    [['--log-level', 'info,store=loud', '--', 'x'], 'item 2 names an unknown level (known levels: fatal'],
    [['--log-level', 'info,debug', '--', 'x'], 'item 2 sets a level a second time'],
  ])('%j is told with %s', (argv, message) => {
    expect(faultsOf({ argv })[0]?.message).toContain(message);
  });

  it('of all sources are told at once', () => {
    const file = {
      listen: { path: 'mcp' },
      mcpServers: { git: { args: ['${N}'] }, 'x y': { command: 'x', warm: '1' } },
    };
    const argv = ['--config', 'config.json', '--port', '99999', '--nonsense=1'];
    expect(pathsOf({ argv, env: { GANGWAY_LIMITS_SESSION_REQUESTS: 'deep' }, file })).toEqual([
      '--nonsense',
      '--port',
      'GANGWAY_LIMITS_SESSION_REQUESTS',
      // Those of a file are in the order of its text.
      'config.json: listen.path',
      'config.json: mcpServers.git',
      'config.json: mcpServers.git.args[0]',
      'config.json: mcpServers["x y"]',
      'config.json: mcpServers["x y"].warm',
    ]);
  });

  it('say what would be right', () => {
    expect(faultsOf({ argv: [] })[0]?.message).toContain('mcp-gangway [options] -- <command> [args…]');
    expect(faultsOf({ argv: ['--prot', '--', 'x'] })[0]?.message).toBe('is not an option; did you mean --port?');
    expect(faultsOf({ file: server({ command: 'x', comand: 1 }) })[0]?.message).toContain('did you mean command?');
    expect(faultsOf({ argv: ['--port', 'x', '--', 'x'] })[0]?.message).toBe(
      'must be an integer from 0 to 65535; the default is 8080',
    );
    expect(faultsOf({ argv: ['--redis', 'x', '--', 'x'] })[0]?.message).toContain('is not a Redis URL; write redis://');
  });
});

describe('what only a shell replaces', () => {
  const env = { HOME: '/home/canary', SECRET: 'a$HOME' };
  const noteOf = (entry: unknown) => {
    const result = read({ file: JSON.stringify(server(entry), undefined, 1), env });
    return result.ok && 'warnings' in result ? result.warnings : result;
  };
  const unreplaced = 'which is not replaced, because no shell reads it; write ${HOME}';

  it('has a note with its place, where it reaches a server as it is', () => {
    expect(noteOf({ command: '$HOME/x', args: ['a', '$HOME/y'], cwd: '~/x', env: { A: '1$HOME' } })).toEqual([
      `config.json:4:4: mcpServers.git.command: has $HOME, ${unreplaced}`,
      `config.json:7:5: mcpServers.git.args[1]: has $HOME, ${unreplaced}`,
      `config.json:11:5: mcpServers.git.env.A: has $HOME, ${unreplaced}`,
      `config.json:9:4: mcpServers.git.cwd: begins with ~, ${unreplaced}`,
    ]);
    expect(noteOf({ command: '~/x --dir $HOME' })).toHaveLength(2);
  });

  it.each([
    ['with braces', { command: '${HOME}/x', args: ['${HOME}'], cwd: '${HOME}' }],
    ['for a variable that does not exist', { command: 'x', args: ['$NONE', 'a$1', '$', '$$'] }],
    ['as an argument of a shell', { command: '/bin/sh', args: ['-c', 'ls $HOME'] }],
    ['as an argument of a shell in a container', { command: 'docker', args: ['run', 'a', 'bash', '-c', 'ls $HOME'] }],
    ['in a command with a shell', { command: 'bash -c "ls $HOME"' }],
    ['as an argument with ~, which some servers replace', { command: 'x', args: ['~/x'] }],
    ['in the value of a variable', { command: 'x', args: ['${SECRET}'] }],
  ])('has no note %s', (_, entry) => {
    expect(noteOf(entry)).toEqual([]);
  });
});

describe('keys of MCP clients', () => {
  it('that concern only the client are ignored, each with a note and its place', () => {
    const file =
      '{\n"globalShortcut": "",\n"inputs": [],\n"mcpServers": { "a": { "command": "x",\n"alwaysLoad": true, "enabled": true } } }';
    const ignored = 'is ignored, because it concerns only MCP clients';
    expect(read({ file })).toMatchObject({
      warnings: [
        `config.json:2:1: globalShortcut: ${ignored}`,
        expect.stringMatching(/^config\.json:3:1: inputs: is ignored, because the gateway asks nobody/),
        `config.json:5:1: mcpServers.a.alwaysLoad: ${ignored}`,
        `config.json:5:21: mcpServers.a.enabled: ${ignored}`,
      ],
    });
  });

  it('are not suggested for other keys', () => {
    expect(faultsOf({ file: server({ command: 'x', alwaysLod: 1 }) })[0]?.message).not.toContain('did you mean always');
  });

  it('with the type ws name a WebSocket', () => {
    const file = server({ type: 'ws', url: 'wss://a.example/mcp' });
    expect(configOf({ file }).servers).toMatchObject([{ address: { transport: 'ws' } }]);
  });
});

it.each([
  ['no key', [], 'contains no key'],
  ['only expired keys', [{ name: 'alice', sha256: 'a'.repeat(64), expires: '2020-01-01T00:00:00Z' }], 'have expired'],
  ['a key that is valid', [{ name: 'alice', sha256: 'a'.repeat(64) }], undefined],
])('a file of keys with %s is accepted, with a warning if nobody can use the gateway', (_, keys, warning) => {
  const argv = ['--api-keys-file', 'keys.json', '--', 'x'];
  const result = readConfiguration({ argv, env: {}, readFile: () => JSON.stringify(keys) });
  expect(result.ok && 'warnings' in result && result.warnings).toEqual(
    warning === undefined ? [] : [expect.stringContaining(warning)],
  );
});

describe('warnings', () => {
  it('tell what has no effect, without values', () => {
    const env = {
      REDIS_URL: 'redis://:canary@x',
      GANGWAY_REDIS_URL: 'redis://:canary@x',
      GANGWAY_PROT: 'canary',
      GANGWAY_SERVICE_HOST: '10.0.0.1',
      GANGWAY_PORT: '1',
    };
    expect(read({ argv: ['--', 'x'], env })).toMatchObject({
      warnings: [
        'The environment variable GANGWAY_REDIS_URL has no effect, because it does not name an option. Did you mean GANGWAY_REDIS?',
        'The environment variable GANGWAY_PROT has no effect, because it does not name an option. Did you mean GANGWAY_PORT?',
      ],
    });
  });
});

describe('whatever is given', () => {
  const keys = [...options.keys()];
  const flags = [
    ...keys.map(flagOf),
    '--config',
    '--help',
    '--',
    'check',
    '-v',
    '--config=config.json',
    'https://u:p@x',
  ];
  const argv = fc.array(fc.oneof(fc.constantFrom(...flags), fc.string()), { maxLength: 8 });
  const env = fc.dictionary(
    fc.oneof(fc.constantFrom(...keys.map(environmentNameOf), configFileVariable, 'REDIS_URL'), fc.string()),
    fc.string(),
    { maxKeys: 5 },
  );
  const name = fc.oneof(
    fc.constantFrom('command', 'args', 'env', 'url', 'type', 'disabled', '__proto__', ...keys),
    fc.string(),
  );
  const value = fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.constantFrom('${A}', 'a "b', '\0', -1, 'config.json'));
  const entry = fc.oneof(fc.dictionary(name, value, { maxKeys: 5 }), value);
  const file = fc.oneof(
    fc.record(
      { mcpServers: fc.dictionary(name, entry, { maxKeys: 3 }), port: value, warm: value },
      { requiredKeys: [] },
    ),
    fc.dictionary(name, value),
    fc.string(),
    fc.json(),
  );

  it('it never throws, and every fault has a place and a message', () => {
    fc.assert(
      fc.property(argv, env, file, (argv, env, file) => {
        for (const fault of faultsOf({ argv, env, file })) {
          expect(fault.path).not.toBe('');
          expect(fault.message).toMatch(/^[^\n]+(\n {2}mcp-gangway .*)*$/);
        }
      }),
      { numRuns: 500 },
    );
  });

  it('no secret ever stands in a fault or a warning (P12)', () => {
    const canary = 'CANARY-7f3a';
    const secret = fc
      .tuple(
        fc.constantFrom('', 'A=', 'A B=', '${', '"', '\0', ' ', '--'),
        fc.constantFrom('', '"', '}', '\0', '\n', ',='),
      )
      .map(([before, after]) => before + canary + after);
    const wrong = fc.oneof(secret, fc.array(secret), fc.dictionary(fc.constantFrom('A', '', 'B=C'), secret));
    const record = (): fc.Arbitrary<object> =>
      fc.record({ command: fc.constant('x'), env: wrong, headers: wrong, warm: wrong }, { requiredKeys: [] });
    const text = fc
      .tuple(
        fc.record({ redis: wrong, env: wrong, mcpServers: fc.record({ a: record() }) }, { requiredKeys: [] }),
        fc.boolean(),
      )
      // Cut short, so that it is not JSON.
      .map(([file, isCut]) => JSON.stringify(file).slice(0, isCut ? -1 : undefined));
    const arguments_ = fc
      .tuple(secret, secret, secret)
      .map(([first, second, third]) => [
        ...['--config', 'config.json', `--env=${first}`, '--env', second],
        ...[`--redis=${third}`, `--password=${first}`, `-p${second}`, `https://${canary}@x`, canary],
      ]);
    const variables = fc.record(
      { GANGWAY_ENV: secret, GANGWAY_REDIS: secret, REDIS_URL: secret, GANGWAY_PORT: secret, GANGWAY_PROT: secret },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(
        fc.oneof(arguments_, fc.constant(['--config', 'config.json'])),
        variables,
        text,
        (argv, env, file) => {
          const result = read({ argv, env, file });
          const said = result.ok ? ('warnings' in result ? result.warnings : []) : result.faults;
          expect(JSON.stringify(said)).not.toContain(canary);
        },
      ),
      { numRuns: 500 },
    );
  });
});
