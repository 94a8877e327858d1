import { expect, it } from 'vitest';
import { renderConfigOnly } from '../../../../src/app/commands/check/render-check.ts';
import { readConfiguration } from '../../../../src/config/config.ts';

const argv = ['check', '--config-only', '--allow-host', '*', '--', 'x'];
const read = readConfiguration({ argv, env: { GANGWAY_PROT: '1' }, readFile: () => '' });
if (!('config' in read)) throw new Error('not valid');

it('prints warnings about variables, advice and the result', () => {
  expect(renderConfigOnly(read, false).split('\n')).toEqual([
    'NOTE  configuration: The environment variable GANGWAY_PROT has no effect, because it does not name an option. Did you mean GANGWAY_PORT?',
    expect.stringMatching(/^NOTE {2}--allow-host: With \*/),
    'OK    The configuration is valid: 1 server.',
    '',
  ]);
});

it('prints the same as JSON, without a server that was checked', () => {
  expect(JSON.parse(renderConfigOnly(read, true))).toMatchObject({
    ok: true,
    servers: [],
    redis: null,
    advice: [{ about: 'configuration' }, { about: '--allow-host' }],
  });
});

it('counts servers, views and disabled servers, and names the disabled ones', () => {
  const file = {
    mcpServers: { a: { command: 'x' }, b: { command: 'x' }, old: { command: 'x', disabled: true } },
    views: { all: ['a', 'b'] },
  };
  const configuration = readConfiguration({
    argv: ['check', '--config', 'g.json'],
    env: {},
    readFile: () => JSON.stringify(file),
  });
  if (!('config' in configuration)) throw new Error('not valid');
  expect(renderConfigOnly(configuration, false).split('\n')).toEqual([
    'NOTE  old: The file disables this server, so the gateway ignores it.',
    'OK    The configuration is valid: 2 servers, 1 view, 1 disabled.',
    '',
  ]);
});
