import { readFileSync } from 'node:fs';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { warnOfExpiry } from '../../src/app/access/exposure.ts';
import { renderConfigOnly } from '../../src/app/commands/check/render-check.ts';
import { readConfiguration } from '../../src/config/config.ts';
import { digestOfKey } from '../../src/core/auth/api-keys.ts';
import { type GatewayOptions, root, startGateway } from '../support/gateway.ts';
import { certificateFolder, type ServerCertificate } from '../support/server-certificate.ts';
import { withRecorder } from './recorder.ts';

/** The environment of a gateway that `startGateway` would bind to 127.0.0.1. */
const onAllAddresses = { NODE_OPTIONS: `--import=${root}test/hardening/on-all-addresses.mjs` };

const warning = { level: 'warn', detail: expect.stringContaining('--auth.required') };
const authenticated = ['--auth.proxy.userHeader', 'x-user', '--auth.proxy.addresses', '10.0.0.1'];

const days = 24 * 3_600_000;

const warningsOf = async (options: GatewayOptions, about = 'no authentication is configured') =>
  (await startGateway(options)).logs().filter(({ msg }) => String(msg).includes(about));

describe('a gateway that everybody can reach', () => {
  it('warns without authentication, and says what to do', async () => {
    expect(await warningsOf({ ...withRecorder(), env: onAllAddresses })).toMatchObject([warning]);
  });

  it('does not with authentication, nor on this machine alone', async () => {
    expect(await warningsOf({ ...withRecorder(...authenticated), env: onAllAddresses })).toEqual([]);
    expect(await warningsOf(withRecorder())).toEqual([]);
  });

  it.each([[onAllAddresses], [{}]])('with --auth.required does not start without: exit code 2', async (env) => {
    const failed = await startGateway({ ...withRecorder('--auth.required'), env }).then(
      () => 'started',
      (error: Error) => error.message,
    );
    expect(failed).toMatch(/ended \(2\)/);
    expect(failed).toContain('--auth.required: requires authentication, but none is configured');
  });

  it('with --auth.required starts with authentication', async () => {
    const gateway = await startGateway(withRecorder('--auth.required', ...authenticated));
    expect(gateway.url).toContain('/mcp');
  });
});

describe('a gateway whose clients send keys or tokens', () => {
  const folder = certificateFolder();
  let certificate: ServerCertificate;
  beforeAll(async () => {
    certificate = await folder.make('short');
  });
  afterAll(() => folder.remove());

  const keys = { GANGWAY_API_KEYS: `ada:sha256:${digestOfKey('key-of-ada')}` };
  const unencrypted = (env: Record<string, string>, ...args: string[]) =>
    warningsOf({ ...withRecorder(...args), env: { ...keys, ...env } }, 'has no TLS');

  it('warns where others can reach it and nothing encrypts them, and says what to do', async () => {
    const detail = expect.stringMatching(/--tls-cert.*--public-url/);
    expect(await unencrypted(onAllAddresses)).toMatchObject([{ level: 'warn', detail }]);
    expect(await unencrypted(onAllAddresses, '--public-url', 'http://mcp.example.com')).toHaveLength(1);
  });

  it('does not with TLS of its own or of a proxy, nor on this machine alone', async () => {
    const { cert, key } = certificate;
    expect(await unencrypted(onAllAddresses, '--tls-cert', cert, '--tls-key', key)).toEqual([]);
    expect(await unencrypted(onAllAddresses, '--public-url', 'https://mcp.example.com')).toEqual([]);
    expect(await unencrypted(onAllAddresses, ...authenticated)).toEqual([]);
    expect(await unencrypted({})).toEqual([]);
  });

  it('warns of a certificate that expires within 14 days', async () => {
    const { cert, key } = certificate;
    const options = withRecorder('--tls-cert', cert, '--tls-key', key);
    const detail = expect.stringContaining('--tls-cert');
    expect(await warningsOf(options, 'expires within 14 days')).toMatchObject([{ level: 'warn', detail }]);
  });

  it('is told by check as well', () => {
    const { cert, key } = certificate;
    const argv = ['check', '--config-only', '--tls-cert', cert, '--tls-key', key, '--', 'x'];
    const read = readConfiguration({ argv, env: {}, readFile: (path) => readFileSync(path, 'utf8') });
    if (!('config' in read)) throw new Error('not valid');
    expect(renderConfigOnly(read, false)).toMatch(/^NOTE {2}--tls-cert: the TLS certificate expires within 14 days\. /);
  });

  it.each([
    ['more than 14 days before its end', -12.1 * days, []],
    ['less than 14 days before its end', -11.9 * days, ['the TLS certificate expires within 14 days']],
    ['when it is made', 0, ['the TLS certificate expires within 14 days']],
    ['after its end', 2.1 * days, ['the TLS certificate has expired: clients refuse it']],
  ])('warns of one that holds for 2 days: %s', (_, afterMs, expected) => {
    const lines: string[] = [];
    const { cert, key } = certificate;
    const pair = { cert: readFileSync(cert, 'utf8'), key: readFileSync(key, 'utf8') };
    warnOfExpiry(pair, Date.now() + afterMs, pino({}, { write: (line: string) => void lines.push(line) }));
    expect(lines.map((line) => JSON.parse(line).msg)).toEqual(expected);
  });
});
