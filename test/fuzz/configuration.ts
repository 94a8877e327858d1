import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { type ConfigurationSources, readConfiguration } from '../../src/config/config.ts';
import { type ConfigurationIssue, renderIssueMessage } from '../../src/config/issues.ts';
import { flagsOf, namesAt, options, variablesOf } from '../../src/config/options/option-names.ts';
import { parseRedisUrl } from '../../src/config/redis-url.ts';
import { readServerUrl } from '../../src/config/server-url.ts';
import { readJsonc } from '../../src/config/sources/read-jsonc.ts';
import { splitCommand } from '../../src/core/backend/stdio/launch/split-command.ts';
import { anyText, jsonText } from '../support/json-texts.ts';
import { parses } from '../support/plain-json.ts';
import { corpusOf, linesOf, mutated, mutatedText } from './corpus.ts';
import { createFuzzer } from './fuzzer.ts';

const paths = [...options.keys()];
const texts = linesOf('values');
/** Nothing that is said of a configuration may repeat it (P12). */
const secret = 'S3CRET';
const value = fc.oneof(
  fc.constantFrom(...texts),
  fc.constantFrom(
    secret,
    `https://${secret}@h/`,
    `redis://:${secret}@h:x`,
    `X: ${secret}`,
    `A=${secret}`,
    `"${secret}`,
  ),
  mutatedText(texts.filter((text) => !text.includes(secret))),
);

/** What is told of a fault, without the name of the file that it is in. A key file that is no list has no other place. */
const toldOf = ({ path, message }: ConfigurationIssue): string =>
  message.startsWith('must be a list such as [{ "name"') ? message : path.slice(path.lastIndexOf(': ') + 1) + message;

/** What is done with any configuration: it is taken, or all that is wrong is told. */
function read(sources: Partial<ConfigurationSources>): void {
  const result = readConfiguration({ argv: [], env: {}, readFile: () => '', ...sources });
  const told = result.ok ? ('warnings' in result ? result.warnings : []) : result.faults.map(toldOf);
  assert.doesNotMatch(told.join('\n'), /S3CRET/);
  if (!result.ok) {
    assert.ok(result.faults.length > 0);
    assert.ok(result.faults.every(({ path, message }) => path !== '' && message !== ''));
  } else if ('config' in result) {
    const names = result.config.servers.map(({ name }) => name);
    assert.ok(names.length > 0 && new Set(names).size === names.length);
  }
}

const flags = fc.oneof(
  fc.constantFrom('check', '--', '--help', '--config', '--prot', '-x', '--=', '--port=', '-'),
  fc.constantFrom(...paths).map((path) => flagsOf(path)[0]),
);
const argument = fc.oneof(
  flags,
  value,
  fc.tuple(fc.constantFrom(...paths), value).map(([path, text]) => `${flagsOf(path)[0]}=${text}`),
);

const commandLine = createFuzzer({
  name: 'command lines and environments: taken, or all that is wrong is told, without a value',
  share: 1.5,
  cases: fc.tuple(
    fc.array(argument, { maxLength: 6 }),
    fc.dictionary(
      fc.oneof(
        fc.constantFrom(...paths).map((path) => variablesOf(path)[0] ?? ''),
        fc.constantFrom('REDIS_URL', 'GANGWAY_CONFIG', 'GANGWAY_PROT'),
      ),
      value,
      { maxKeys: 3 },
    ),
    fc.constantFrom(['--', 'node', 'x.js'], ['http://127.0.0.1:1/mcp'], ['--config', 'c.json'], []),
  ),
  check([argv, env, server]) {
    read({ argv: [...argv, ...server], env, readFile: () => '{"mcpServers":{"a":{"command":"x"}}}' });
  },
});

const files = corpusOf('config');
const fileKey = fc.oneof(
  fc.constantFrom(
    ...paths,
    'mcpServers',
    'servers',
    'command',
    'args',
    'env',
    'url',
    'type',
    'disabled',
    '__proto__',
    'headers',
  ),
  fc.constantFrom('constructor', 'toString', '', 'a b', 'comand'),
);
const fileValue = fc.oneof(
  value,
  fc.constantFrom(true, false, null, 0, -1, Number.POSITIVE_INFINITY, 65_536),
  fc.array(value, { maxLength: 3 }),
  fc.dictionary(fileKey, value, { maxKeys: 2 }),
  fc.jsonValue({ maxDepth: 2 }),
);
const entry = fc.dictionary(fileKey, fileValue, { maxKeys: 4 });
const file = fc
  .tuple(
    fc.dictionary(fileKey, fileValue, { maxKeys: 3 }),
    fc.dictionary(fc.oneof(fileKey, fc.constantFrom('git', 'fs')), fc.oneof(entry, fileValue), { maxKeys: 3 }),
  )
  .map(([globals, mcpServers]) => JSON.stringify({ ...globals, mcpServers }));
const fileTexts = fc.oneof(file, mutated(files).map(String), anyText);

const configFile = createFuzzer({
  name: 'configuration files: taken, or all that is wrong is told, without a value',
  share: 1.5,
  cases: fc.tuple(fileTexts, fc.dictionary(fc.constantFrom('A', 'TOKEN'), value)),
  seeds: files.map((bytes) => [bytes.toString(), {}] as const),
  check([text, env]) {
    read({ argv: ['--config', 'config.json'], env, readFile: () => text });
  },
});

const jsonFaults = createFuzzer({
  name: 'faults of JSON: a place in a text that JSON.parse refuses, or that has a key twice',
  share: 4,
  cases: fc.oneof(fileTexts, jsonText.value, fc.string()),
  check(text) {
    const read = readJsonc(text);
    if (read.ok) assert.ok(parses(text) ? isDeepStrictEqual(read.value, JSON.parse(text)) : /[/,]/.test(text));
    else {
      const { line, column, message } = read.error;
      assert.ok(line > 0 && column > 0 && text.split(/\r\n|\r|\n/).length >= line);
      assert.ok(!parses(text) || /twice|limited/.test(message));
      assert.doesNotMatch(message, /S3CRET/);
    }
  },
});

const addresses = createFuzzer({
  name: 'addresses and commands: read or refused',
  share: 3,
  cases: fc.tuple(value, fc.constantFrom('auto', 'http', 'sse')),
  seeds: texts.map((text) => [text, 'auto'] as const),
  check([text, transport]) {
    const url = readServerUrl(text, transport);
    if (!url.ok) assert.doesNotMatch(renderIssueMessage(url.message, namesAt('--', false)), /S3CRET/);
    else if ('url' in url.address) assert.equal(url.address.url.username + url.address.url.password, '');
    const split = splitCommand(text);
    if (split.ok) assert.ok(split.argv.every((word) => typeof word === 'string'));
    else assert.doesNotMatch(split.message, /S3CRET/);
    try {
      parseRedisUrl(text);
    } catch (error) {
      assert.ok(error instanceof TypeError);
      assert.doesNotMatch(error.message, /S3CRET/);
    }
  },
});

export const fuzzers = [commandLine, configFile, jsonFaults, addresses];
