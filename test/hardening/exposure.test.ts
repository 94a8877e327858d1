import { describe, expect, it } from 'vitest';
import { type GatewayOptions, root, startGateway } from '../support/gateway.ts';
import { withRecorder } from './recorder.ts';

/** The environment of a gateway that `startGateway` would bind to 127.0.0.1. */
const onAllAddresses = { NODE_OPTIONS: `--import=${root}test/hardening/on-all-addresses.mjs` };

const warning = { level: 40, detail: expect.stringContaining('--require-auth') };
const authenticated = ['--proxy-identity-header', 'x-user', '--trusted-proxy', '10.0.0.1'];

describe('a gateway that everybody can reach', () => {
  const warningsOf = async (options: GatewayOptions) =>
    (await startGateway(options)).logs().filter(({ msg }) => String(msg).includes('no authentication is configured'));

  it('warns without authentication, and says what to do', async () => {
    expect(await warningsOf({ ...withRecorder(), env: onAllAddresses })).toMatchObject([warning]);
  });

  it('does not with authentication, nor on this machine alone', async () => {
    expect(await warningsOf({ ...withRecorder(...authenticated), env: onAllAddresses })).toEqual([]);
    expect(await warningsOf(withRecorder())).toEqual([]);
  });

  it.each([[onAllAddresses], [{}]])('with --require-auth does not start without: exit code 2', async (env) => {
    const failed = await startGateway({ ...withRecorder('--require-auth'), env }).then(
      () => 'started',
      (error: Error) => error.message,
    );
    expect(failed).toMatch(/ended \(2\)/);
    expect(failed).toContain('--require-auth: wants authentication, and none is configured');
  });

  it('with --require-auth starts with authentication', async () => {
    const gateway = await startGateway(withRecorder('--require-auth', ...authenticated));
    expect(gateway.url).toContain('/mcp');
  });
});
