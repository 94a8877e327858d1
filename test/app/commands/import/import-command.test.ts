import { describe, expect, it } from 'vitest';
import { importRegistry } from '../../../../src/app/commands/import/import-command.ts';
import { readConfiguration } from '../../../../src/config/config.ts';
import { described, npmPackage, stdio } from './descriptions.ts';

/** The entries that a description becomes, and the report. Every configuration must be one that the gateway accepts. */
function convert(description: object): { entries: Record<string, Record<string, unknown>>; report: string } {
  const { configuration, report } = importRegistry(JSON.stringify(description), 'server.json');
  if (configuration === undefined) return { entries: {}, report };
  const enabled = JSON.parse(configuration.replaceAll(/,\s*"disabled": true/g, ''));
  const names = [...configuration.matchAll(/\$\{(\w+)/g)].map(([, name = '']) => [name, '1'] as const);
  const env = { HOME: '/home/me', ...Object.fromEntries(names) };
  const asFile = configuration.includes('"url": "${')
    ? '{"mcpServers":{"x":{"command":"x"}}}'
    : JSON.stringify(enabled);
  const read = readConfiguration({ argv: ['--config', 'gangway.json'], env, readFile: () => asFile });
  expect(read.ok ? [] : read.faults).toEqual([]);
  return { entries: JSON.parse(configuration).mcpServers, report };
}

const onlyEntry = (description: object): Record<string, unknown> | undefined =>
  Object.values(convert(description).entries)[0];

/** A remote with a header that is filled from variables. */
const joined = (value: string, variables: object): object => ({
  type: 'sse',
  url: 'https://example.com',
  headers: [{ name: 'X-A', value, variables }],
});

const joinedUrl = {
  type: 'sse',
  url: 'https://example.com/?x={a}{file:/run/secrets/key}',
  variables: { a: { value: '$' } },
};

describe('a package', () => {
  it('of npm runs with npx at its version, without a question', () => {
    expect(convert(described({ packages: [npmPackage] })).entries).toEqual({
      tides: { command: 'npx', args: ['-y', '@harbour/tides-mcp@2.4.0'] },
    });
  });

  it.each([
    ['pypi', { identifier: 'tides-mcp', version: '2.4.0' }, ['uvx', 'tides-mcp@2.4.0']],
    ['pypi', { identifier: 'tides-mcp', version: '2.4.0', runtimeHint: 'pipx' }, ['pipx', 'run', 'tides-mcp==2.4.0']],
    ['nuget', { identifier: 'Harbour.Tides', version: '2.4.0' }, ['dnx', 'Harbour.Tides@2.4.0', '--yes']],
    [
      'oci',
      { identifier: 'ghcr.io/harbour/tides:2.4.0' },
      ['docker', 'run', '-i', '--rm', 'ghcr.io/harbour/tides:2.4.0'],
    ],
    [
      'oci',
      { identifier: 'harbour/tides', version: '2.4.0', runtimeHint: 'podman' },
      ['podman', 'run', '-i', '--rm', 'harbour/tides:2.4.0'],
    ],
    [
      'go',
      { identifier: 'github.com/harbour/tides', version: 'v2.4.0' },
      ['go', 'run', 'github.com/harbour/tides@v2.4.0'],
    ],
    ['npm', { identifier: 'tides', version: '2.4.0', runtimeHint: 'bunx' }, ['bunx', 'tides@2.4.0']],
  ])('of %s runs as %j', (registryType, rest, [command, ...args]) => {
    const packages = [{ registryType, transport: stdio, ...rest }];
    expect(onlyEntry(described({ packages }))).toEqual({ command, args });
  });

  it('gets its arguments in their order: fixed ones, flags, defaults and values that the operator chooses', () => {
    const { entries, report } = convert(
      described({
        packages: [
          {
            ...npmPackage,
            runtimeHint: 'npx',
            runtimeArguments: [{ type: 'named', name: '--prefer-offline' }],
            packageArguments: [
              { type: 'positional', value: 'serve' },
              { type: 'named', name: '--stdio' },
              {
                type: 'named',
                name: '--units',
                description: 'Units of heights',
                default: 'metric',
                choices: ['metric', 'imperial'],
              },
              { type: 'named', name: '--quiet', format: 'boolean', default: 'true' },
              { type: 'named', name: '--verbose', format: 'boolean', default: false },
              { type: 'named', name: '--cache', description: 'Folder of the cache', format: 'filepath' },
              {
                type: 'positional',
                valueHint: 'harbour',
                description: 'Name of a harbour',
                isRequired: true,
                isRepeated: true,
              },
            ],
          },
        ],
      }),
    );
    expect(entries['tides']?.['args']).toEqual([
      '-y',
      '--prefer-offline',
      '@harbour/tides-mcp@2.4.0',
      'serve',
      '--stdio',
      '--units',
      '${TIDES_UNITS:-metric}',
      '--quiet',
      '${TIDES_HARBOUR}',
    ]);
    expect(report).toContain('  TIDES_UNITS  Units of heights (one of metric, imperial; by default metric)');
    expect(report).toContain('  TIDES_HARBOUR  Name of a harbour\n');
    expect(report).toContain(
      'the argument --cache is optional and was left out (Folder of the cache); to set it, add it to args',
    );
    expect(report).toContain('the argument harbour can be given more than once');
  });

  it('gets its variables by their own names, and a secret never literally', () => {
    const { entries, report } = convert(
      described({
        packages: [
          {
            ...npmPackage,
            environmentVariables: [
              { name: 'TIDES_KEY', description: 'Key of the service', isRequired: true, isSecret: true },
              { name: 'REGION', default: 'north' },
              { name: 'MODE', value: 'mcp' },
              { name: 'LOG_LEVEL', description: 'Level of the log' },
              { name: 'PASSWORD', value: 'hunter2-value', isSecret: true },
              { name: 'TOKEN', default: 'hunter2-default', isSecret: true, isRequired: true },
              {
                name: 'DSN',
                value: 'pg://{user}:{word}@db',
                variables: { user: { default: 'me' }, word: { isSecret: true, value: 'hunter2-part' } },
              },
            ],
          },
        ],
      }),
    );
    expect(entries['tides']?.['env']).toEqual({
      TIDES_KEY: '${TIDES_KEY}',
      REGION: '${REGION:-north}',
      MODE: 'mcp',
      PASSWORD: '${PASSWORD}',
      TOKEN: '${TOKEN}',
      DSN: 'pg://${TIDES_USER:-me}:${TIDES_WORD}@db',
    });
    expect(JSON.stringify(entries) + report).not.toContain('hunter2');
    expect(report).toContain('  TIDES_KEY  Key of the service (a secret)');
    expect(report).toContain(
      'the variable LOG_LEVEL is optional and was left out (Level of the log); to set it, add it to env',
    );
    expect(report).toContain('the variable PASSWORD has a secret in the file; the secret was not copied');
    expect(report).toContain('write ${file:/path} in place of ${VARIABLE}');
  });

  it('in a container gets variables through the environment, and the operator sees the arguments of docker', () => {
    const bind = {
      type: 'named',
      name: '-v',
      value: '{from}:{to}',
      variables: { from: { isRequired: true }, to: { default: '/data' } },
    };
    const packages = [
      {
        registryType: 'oci',
        identifier: 'harbour/tides:2.4.0',
        transport: stdio,
        runtimeArguments: [bind, bind],
        environmentVariables: [{ name: 'TIDES_KEY', isRequired: true, isSecret: true }],
      },
    ];
    const { entries, report } = convert(described({ packages }));
    const expected =
      'run -i --rm -e TIDES_KEY -v ${TIDES_FROM}:${TIDES_TO:-/data} -v ${TIDES_FROM_2}:${TIDES_TO_2:-/data}';
    expect(entries['tides']).toEqual({
      command: 'docker',
      args: [...expected.split(' '), 'harbour/tides:2.4.0'],
      env: { TIDES_KEY: '${TIDES_KEY}' },
    });
    expect(report).toContain('docker gets arguments from the publisher');
  });

  it('in a container may repeat the command and the image, and pass a secret as an argument', () => {
    const named = { type: 'named', format: 'boolean', value: 'true' };
    const packages = [
      {
        registryType: 'oci',
        identifier: 'ghcr.io/harbour/tides:2.4.0',
        transport: stdio,
        runtimeArguments: [
          { type: 'positional', value: 'run' },
          { ...named, name: '-i' },
          { ...named, name: '--rm' },
          {
            type: 'named',
            name: '-e',
            value: 'TIDES_KEY={key}',
            variables: { key: { isRequired: true, isSecret: true } },
          },
          { type: 'positional', valueHint: 'image', value: 'ghcr.io/harbour/tides' },
        ],
      },
    ];
    expect(onlyEntry(described({ packages }))).toEqual({
      command: 'docker',
      args: ['run', '-i', '--rm', '-e', 'TIDES_KEY', 'ghcr.io/harbour/tides:2.4.0'],
      env: { TIDES_KEY: '${TIDES_KEY}' },
    });
  });

  it('of another registry of npm names it; of another kind, the operator configures it', () => {
    const npm = convert(described({ packages: [{ ...npmPackage, registryBaseUrl: 'https://npm.example.com' }] }));
    expect(npm.entries['tides']?.['env']).toEqual({ npm_config_registry: 'https://npm.example.com' });
    const python = {
      registryType: 'pypi',
      identifier: 'tides',
      version: '1',
      transport: stdio,
      registryBaseUrl: 'https://py.example.com',
    };
    expect(convert(described({ packages: [python] })).report).toContain('comes from https://py.example.com');
  });

  it('that serves HTTP becomes a URL, with the command that starts it', () => {
    const { entries, report } = convert(
      described({
        packages: [
          {
            ...npmPackage,
            transport: { type: 'streamable-http', url: 'http://127.0.0.1:{port}/mcp' },
            packageArguments: [{ type: 'named', name: '--port', default: '4000', isRequired: true }],
          },
        ],
      }),
    );
    expect(entries['tides']).toEqual({ type: 'http', url: 'http://127.0.0.1:${TIDES_PORT:-4000}/mcp' });
    expect(report).toContain('start the package yourself: npx -y @harbour/tides-mcp@2.4.0 --port ${TIDES_PORT:-4000}');
  });

  it.each([
    [
      'mcpb',
      { identifier: 'https://example.com/tides.mcpb', fileSha256: 'ab12' },
      /download https:\/\/example.com\/tides.mcpb, check that its sha256sum is ab12, unzip it/,
    ],
    [
      'cargo',
      { identifier: 'tides-mcp', version: '0.3.0' },
      /run cargo install tides-mcp --version 0.3.0, and write the program as command/,
    ],
    ['flatpak', { identifier: 'tides' }, /packages of the kind flatpak are unknown; install the package/],
    ['npm', { identifier: '--eval=1' }, /identifier or its version has characters/],
  ])(
    'of the kind %s that the gateway cannot start is not written, and the report says what to do',
    (registryType, rest, remedy) => {
      const { entries, report } = convert(described({ packages: [{ registryType, transport: stdio, ...rest }] }));
      expect(entries).toEqual({});
      expect(report).toMatch(remedy);
      expect(report).toContain('No configuration was written.');
    },
  );

  it('never runs another program than one that fetches packages', () => {
    const packages = [{ ...npmPackage, runtimeHint: 'bash' }];
    expect(onlyEntry(described({ packages }))).toMatchObject({ command: 'npx' });
    expect(convert(described({ packages })).report).toContain('the hint bash does not fetch packages');
  });
});

describe('a remote', () => {
  it('becomes a URL with its transport and its headers', () => {
    const { entries, report } = convert(
      described({
        remotes: [
          {
            type: 'streamable-http',
            url: 'https://{tenant}.example.com/mcp',
            variables: { tenant: { description: 'Your tenant', isRequired: true } },
            headers: [
              {
                name: 'Authorization',
                value: 'Bearer {token}',
                variables: { token: { description: 'Token', isSecret: true } },
              },
              { name: 'X-Region', default: 'north' },
              { name: 'X-Trace', description: 'Trace' },
              { name: 'Host', value: 'example.com' },
            ],
          },
        ],
      }),
    );
    expect(entries['tides']).toEqual({
      type: 'http',
      url: 'https://${TIDES_TENANT}.example.com/mcp',
      headers: { Authorization: 'Bearer ${TIDES_TOKEN}', 'X-Region': '${TIDES_X_REGION:-north}' },
    });
    expect(report).toContain('the header X-Trace is optional and was left out (Trace); to set it, add it to headers');
    expect(report).toContain('the header Host was left out: it is host, which the gateway sets itself');
  });

  it('can begin with a variable, and must describe every part of its URL', () => {
    const open = { type: 'sse', url: '{base}/sse', variables: { base: { isRequired: true } } };
    expect(onlyEntry(described({ remotes: [open] }))).toEqual({ type: 'sse', url: '${TIDES_BASE}/sse' });
    const unknown = { type: 'sse', url: 'https://{nobody}/sse' };
    expect(convert(described({ remotes: [unknown] })).report).toContain(
      'its URL has {nobody}, which the file does not describe',
    );
  });
});

describe('a description', () => {
  it('of several forms of one server enables the first that can be written', () => {
    const bundle = { registryType: 'mcpb', identifier: 'https://example.com/tides.mcpb', transport: stdio };
    const remote = { type: 'streamable-http', url: 'https://example.com/mcp' };
    const python = { registryType: 'pypi', identifier: 'tides-mcp', version: '1.0.0', transport: stdio };
    const { entries, report } = convert(
      described({ packages: [bundle, npmPackage, python], remotes: [remote, remote] }),
    );
    expect(Object.entries(entries).map(([name, entry]) => [name, entry['disabled']])).toEqual([
      ['tides', undefined],
      ['tides-pypi', true],
      ['tides-streamable-http', true],
      ['tides-streamable-http-2', true],
    ]);
    expect(report).toContain('only the first is enabled');
    expect(report).toContain('tides was not written: the package is a bundle');
  });

  it('names the variables that must be set, and apart from them those of disabled entries', () => {
    const variables = [{ name: 'TIDES_KEY', isRequired: true, isSecret: true }];
    const remote = {
      type: 'sse',
      url: 'https://{region}.example.com/sse',
      variables: { region: { isRequired: true } },
      headers: [{ name: 'X-Key', value: '{account}', variables: { account: { isRequired: true } } }],
    };
    const { report } = convert(
      described({ packages: [{ ...npmPackage, environmentVariables: variables }], remotes: [remote] }),
    );
    expect(report.split('\n').slice(1)).toEqual([
      'Set these variables before the gateway starts:',
      '  TIDES_KEY  the variable TIDES_KEY (a secret)',
      'The disabled entries need these variables too:',
      '  TIDES_REGION  {region} in the URL',
      '  TIDES_ACCOUNT  {account} in the header X-Key',
      'A secret can also come from a file: write ${file:/path} in place of ${VARIABLE}.',
      '',
    ]);
  });

  it.each([
    [
      'an argument',
      { packages: [{ ...npmPackage, packageArguments: [{ type: 'positional', value: '${file:/etc/passwd}' }] }] },
    ],
    ['a default', { packages: [{ ...npmPackage, environmentVariables: [{ name: 'A', default: '${HOME}' }] }] }],
    [
      'a header',
      {
        remotes: [
          { type: 'sse', url: 'https://example.com', headers: [{ name: 'X-A', value: '${AWS_SECRET_ACCESS_KEY}' }] },
        ],
      },
    ],
    ['a URL', { remotes: [{ type: 'sse', url: 'https://example.com/?x=${file:/run/secrets/key}' }] }],
    ['a registry', { packages: [{ ...npmPackage, registryBaseUrl: 'https://x.example/${HOME}' }] }],
    ['a header whose parts are joined', { remotes: [joined('{a}{file:/home/me/.netrc}', { a: { value: '$' } })] }],
    ['a URL whose parts are joined', { remotes: [joinedUrl] }],
    ['joined defaults', { remotes: [joined('{a}{b}', { a: { value: '$' }, b: { default: '{HOME}' } })] }],
    ['the name of a chosen value', { remotes: [joined('{a}{TIDES_B}{b}', { a: { value: '$' }, b: {} })] }],
  ])('cannot read variables or files of this machine through %s', (_, parts) => {
    const { entries, report } = convert(described(parts));
    expect(entries).toEqual({});
    expect(report).toContain('contains "${", which the gateway would replace');
  });

  it('may be an answer of the API of the registry', () => {
    const answer = {
      server: described({ packages: [npmPackage] }),
      _meta: { 'io.modelcontextprotocol.registry/official': {} },
    };
    expect(onlyEntry(answer)).toMatchObject({ command: 'npx' });
  });

  it.each([
    ['{', /^mcp-gangway: server.json is not valid JSON: .* \(line 1, column \d+\)\.\n$/],
    ['[]', /is not a server.json of the MCP registry: the text: /],
    ['{"name":"a/b","packages":[{"registryType":"npm"}]}', /packages\[0\]\.identifier: /],
    [
      '{"name":"a/b","packages":[{"registry_type":"npm"}]}',
      /from before 2025-09-16.*; download the server.json of a newer version/,
    ],
    ['{"name":"a/b"}', /has no packages and no remotes\. Ask its publisher/],
  ])('%s is refused with the reason', (content, reason) => {
    const { configuration, report } = importRegistry(content, 'server.json');
    expect(configuration).toBeUndefined();
    expect(report).toMatch(reason);
  });

  it('cannot control the terminal', () => {
    const environmentVariables = [{ name: 'KEY', isRequired: true, description: 'a\u001b[2Jb\r\nc\u202e' }];
    const { report } = convert(described({ packages: [{ ...npmPackage, environmentVariables }] }));
    expect(report).toContain('  KEY  a [2Jb c ');
  });

  it('has any name', () => {
    for (const name of ['io.example/mcp', 'io.example/.hidden', 'io.example/föhn wind', `x/${'a'.repeat(200)}`, 'npx'])
      expect(Object.keys(convert({ ...described({ packages: [npmPackage] }), name }).entries)).toHaveLength(1);
  });
});
