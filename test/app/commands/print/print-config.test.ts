import { describe, expect, it } from 'vitest';
import { renderConfiguration } from '../../../../src/app/commands/print/print-config.ts';
import { readConfiguration } from '../../../../src/config/config.ts';
import { readJsonc } from '../../../../src/config/sources/read-jsonc.ts';

const secrets = new Map([
  ['sec/hdr', 'CANARY-header'],
  ['sec/host', '127.0.0.1'],
  ['sec/redis', 'redis://:CANARY-redis@a'],
]);

/** The text that `config print` prints for a file `gangway.json`. */
function print(file: object, { argv = [], env = {} }: { argv?: string[]; env?: Record<string, string> } = {}): string {
  const readFile = (path: string): string => secrets.get(path) ?? JSON.stringify(file);
  const read = readConfiguration({ argv: ['config', 'print', '--config', 'gangway.json', ...argv], env, readFile });
  if (!read.ok) throw new Error(JSON.stringify(read.faults));
  if (!('config' in read)) throw new Error(read.command);
  return renderConfiguration(read);
}

/** The line of a value, without indentation. */
const lineOf = (text: string, name: string): string | undefined =>
  text
    .split('\n')
    .map((line) => line.trim())
    .find((line) => line.startsWith(`"${name}":`));

const mcpServers = { a: { command: 'x' } };

describe('config print', () => {
  it('prints a file that means the same when it is read', () => {
    const text = print({ mcpServers: { a: { command: 'x', args: ['-v'] }, b: { url: 'http://b.example/mcp' } } });
    const read = readConfiguration({ argv: ['config', 'print', '--config', 'p.jsonc'], env: {}, readFile: () => text });
    if (!read.ok) expect.fail(JSON.stringify(read.faults));
    if (!('config' in read)) expect.fail(read.command);
    const withoutSources = (printed: string): string => printed.replaceAll(/\/\/ .*/g, '');
    expect(withoutSources(renderConfiguration(read))).toBe(withoutSources(text));
  });

  it('shows a value with its reference, and changes no other value that is equal', () => {
    const text = print(
      {
        listen: { host: '${H:-0}' },
        defaults: { cwd: '${A:-a}' },
        mcpServers: { b: { url: 'http://127.0.0.1:9/mcp' } },
      },
      { env: { HOST_: '127.0.0.1' } },
    );
    expect(lineOf(text, 'host')).toBe('"host": "0", // gangway.json:1:12, "${H:-0}"');
    expect(lineOf(text, 'adminHost')).toBe('"adminHost": "127.0.0.1", // default');
    expect(lineOf(text, 'cwd')).toBe('"cwd": "a", // gangway.json:1:42, "${A:-a}"');
    expect(lineOf(text, 'prefix')).toBe('"prefix": "gangway", // default');
    expect(lineOf(text, 'url')).toEqual(expect.stringContaining('"http://127.0.0.1:9/mcp" // gangway'));
  });

  it('shows the reference of each place where files have the same text', () => {
    secrets.set('/tmp/other', 'CANARY-header');
    const file = { headers: { A: '${file:/tmp/other}', B: 'Bearer ${file:sec/hdr}', C: 'CANARY-clear' } };
    const text = print({ mcpServers: { b: { url: 'http://b.example', ...file } } });
    expect(lineOf(text, 'headers')).toBe('"headers": {}, // default');
    expect(text).toContain('"headers": {"A":"${file:/tmp/other}","B":"Bearer ${file:sec/hdr}","C":"***"}');
    expect(text).not.toContain('CANARY');
  });

  it('shows a text of a file as its reference, and a number as its value', () => {
    secrets.set('sec/port', '81');
    const text = print({ listen: { host: '${file:sec/host}', port: '${file:sec/port}' }, mcpServers });
    expect(lineOf(text, 'host')).toBe('"host": "${file:sec/host}", // gangway.json:1:12');
    expect(lineOf(text, 'port')).toBe('"port": 81, // gangway.json:1:38, "${file:sec/port}"');
  });

  it('masks secrets, and the defaults of references to them', () => {
    const [literal, inReference] = [
      'CANARY-0123456789-0123456789-0123456789',
      '${K:-CANARY-0123456789-0123456789-0123456789}',
    ];
    const text = print({
      cluster: { redis: 'redis://:${RP:-CANARY}@a:6379', stateKeys: [literal, inReference] },
      mcpServers: {
        a: {
          command: 'x --token ${T:-CANARY} --api-key=CANARY y',
          env: { A: 'CANARY', B: '${B:-CANARY}' },
          tools: { t: { arguments: { key: 'CANARY', n: 1 } } },
        },
        b: { command: 'x', args: ['--token', '${T:-CANARY}', '--key=CANARY', '${Y:-y}'] },
      },
    });
    expect(text).not.toContain('CANARY');
    expect(lineOf(text, 'redis')).toContain('"redis://:${RP:-***}@a:6379"');
    expect(lineOf(text, 'stateKeys')).toContain('["***","${K:-***}"]');
    expect(lineOf(text, 'command')).toContain('"x --token ${T:-***} --api-key=*** y"');
    expect(text).toContain('"args": ["--token","${T:-***}","--key=***","${Y:-***}"]');
    expect(text).toContain('"tools": {"t":{"arguments":{"key":"***","n":"***"}}}');
  });

  it.each([
    [['--header', 'Authorization: Bearer CANARY']],
    [['--header=Authorization: Bearer CANARY']],
    [['-H', 'X-Api-Key:CANARY']],
    [['-H', 'Authorization: ${A:-CANARY}']],
    [['postgresql://me:CANARY@db/x']],
    [['DATABASE_URL=postgresql://me:CANARY@db/x']],
    [['${DB:-postgresql://me:CANARY@db/x}']],
    [['https://h.example/mcp?v=CANARY']],
    [['https://me:CANARY@h.example/mcp?token=CANARY']],
    [['--token', 'two CANARY words']],
    [['--db', 'Server=my db;Password=CANARY;Timeout=5']],
    [['--settings', '{"db":"x","password":"CANARY"}']],
    [['--run', 'curl with Bearer CANARY-1234567890']],
    [['ghp_CANARY0123456789abcdef']],
  ])('[G-19] [P12] masks secrets in the arguments %j', (args) => {
    expect(print({ mcpServers: { a: { command: 'x', args } } })).not.toContain('CANARY');
    const words = args.map((each) => (each.includes(' ') ? `"${each}"` : each));
    expect(print({ mcpServers: { a: { command: ['x', ...words, '${Y:-y}'].join(' ') } } })).not.toContain('CANARY');
  });

  it('shows the references in headers and URLs of arguments, and what is no secret', () => {
    const args = ['https://${HOST:-h}/mcp', '--header', 'Authorization: Bearer ${T:-CANARY}', '-H', 'tcp://h:1', 'a:b'];
    const text = print({ mcpServers: { a: { command: 'x', args } } });
    expect(text).toContain(
      '["https://${HOST:-***}/mcp","--header","Authorization: Bearer ${T:-***}","-H","tcp://h:1","a:b"]',
    );
    const command = 'x  https://${U:-u}@h/ -H "Authorization: Bearer ${T:-CANARY}" y';
    expect(lineOf(print({ mcpServers: { a: { command } } }), 'command')).toContain(
      JSON.stringify('x  https://${U:-***}@h/ -H "Authorization: Bearer ${T:-***}" y'),
    );
  });

  it('masks a literal password next to a reference in the URL of Redis', () => {
    const text = print({ mcpServers }, { argv: ['--redis', 'redis://:CANARY${file:sec/host}@h'] });
    expect(lineOf(text, 'redis')).toBe('"redis": "redis://***@h", // --redis');
  });

  it('shows the options for all servers, and those that a server sets itself, each with its source', () => {
    const text = print(
      {
        defaults: { env: { A: 'x' }, hibernateAfter: '5m' },
        mcpServers: {
          a: { command: 'node', args: ['x.js'], env: { B: 'y' }, warm: 0 },
          b: { url: 'tcp://[::1]:90' },
        },
      },
      { argv: ['--warm', '2'] },
    );
    expect(text).toContain('"warm": 2, // --warm');
    expect(lineOf(text, 'onExit')).toBe('"onExit": "restore", // default');
    for (const line of [
      /"command": "node", \/\/ gangway.json:1:\d+\n/,
      /"args": \["x.js"\], \/\/ gangway.json:1:\d+\n/,
      /"warm": 0, \/\/ gangway.json:1:\d+\n/,
      /"env": \{"B":"\*\*\*"\} \/\/ gangway.json:1:\d+\n/,
      /"url": "tcp:\/\/\[::1\]:90", \/\/ gangway.json:1:\d+\n/,
    ])
      expect(text).toMatch(line);
    expect(text).toContain('"hibernateAfter": "0" // defaults.hibernateAfter does not apply');
  });

  it('names the command line as the source of a single server', () => {
    const read = readConfiguration({ argv: ['config', 'print', '--', 'x', 'y'], env: {}, readFile: () => '' });
    const text = 'config' in read ? renderConfiguration(read) : '';
    expect(text).toContain('"command": "x", // command line');
    expect(text).toContain('"args": ["y"] // command line');
  });

  it('shows views, which are last', () => {
    const text = print({
      mcpServers: { a: { command: 'x' }, b: { command: 'y' } },
      views: { all: { servers: ['*'], unprefixed: 'b', timeout: '7s', denyTools: ['c'] } },
    });
    expect(text).toContain('"servers": ["a","b"], // gangway.json:1:');
    for (const part of ['"separator": "__"', '"unprefixed": "b"', '"timeout": "7s"', '"denyTools": ["c"]'])
      expect(text).toContain(part);
    const { value } = { value: undefined, ...readJsonc(text) };
    expect(Object.keys(value as object).at(-1)).toBe('views');
  });
});
