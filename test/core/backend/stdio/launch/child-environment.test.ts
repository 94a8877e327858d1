import { describe, expect, it } from 'vitest';
import { childEnvironment } from '../../../../../src/core/backend/stdio/launch/child-environment.ts';
import { openChild } from '../harness.ts';

describe('childEnvironment', () => {
  it('[S13] [P12] takes only what is on the allow-list from the gateway', () => {
    const secrets = {
      REDIS_URL: 'redis://:secret@host',
      NODE_OPTIONS: '--observe.showContents',
      GITHUB_TOKEN: 't',
      LC: 'x',
      path: 'x',
    };
    const harmless = {
      HOME: '/h',
      PATH: '/bin',
      LANG: 'C',
      LC_ALL: 'C',
      LC_TIME: 'C',
      TZ: 'UTC',
      TMPDIR: '/t',
      USER: 'u',
    };
    expect(childEnvironment({ ...secrets, ...harmless, LOGNAME: undefined })).toEqual(harmless);
  });

  describe('[S13] [P12] programs that download packages also get what they need to reach their registry', () => {
    const network = { HTTPS_PROXY: 'http://u:p@proxy', no_proxy: 'localhost', SSL_CERT_FILE: '/ca.pem' };
    const uv = { UV_INDEX_URL: 'https://index', UV_NATIVE_TLS: '1' };
    const npm = { npm_config_registry: 'https://registry', NODE_EXTRA_CA_CERTS: '/ca.pem' };
    const secrets = { UV_PUBLISH_TOKEN: 't', REDIS_URL: 'r', NODE_OPTIONS: '-x', npm_config__authToken: 't' };
    it.each([
      ['uvx', { ...network, ...uv }],
      ['/usr/local/bin/uv', { ...network, ...uv }],
      ['npx', { ...network, ...npm }],
      ['pipx', network],
      ['node', {}],
      ['./uvx-wrapper', {}],
    ])('%s', (command, expected) => {
      expect(childEnvironment({ ...network, ...uv, ...npm, ...secrets }, {}, command)).toEqual(expected);
    });
  });

  it('lets the configuration win, whatever the name', () => {
    const configured = { PATH: '/opt/bin', API_KEY: 'k', ['__proto__']: 'p' };
    const environment = childEnvironment({ PATH: '/bin' }, configured);
    expect(Object.entries(environment).sort()).toEqual(Object.entries(configured).sort());
  });

  it('CVE-2014-6271: leaves out shell functions of the gateway', () => {
    expect(childEnvironment({ TERM: '() { :;}; echo hacked', USER: 'u' })).toEqual({ USER: 'u' });
  });

  it('P12: a server sees this environment, its arguments and its directory, and nothing else', async () => {
    const env = childEnvironment({ ...process.env, REDIS_URL: 'canary' }, { API_KEY: '$HOME `id` "quoted"' });
    const { messages } = openChild('prints-environment', ['a b', '$HOME', '; id', ''], { env, cwd: '/' });
    expect(JSON.parse(await messages.next())).toEqual({ env, args: ['a b', '$HOME', '; id', ''], cwd: '/' });
  });
});
