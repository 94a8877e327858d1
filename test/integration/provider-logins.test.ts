import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type AuthorizationServer, registeredClient } from '../support/authorization-server.ts';
import type { Gateway } from '../support/gateway.ts';
import { post } from '../support/http-client.ts';
import { connectOAuth, type OAuthClientOptions } from '../support/oauth-client.ts';
import { providerProfiles } from '../support/provider-profiles.ts';
import { clientInformation, startProvider } from '../support/started-provider.ts';
import { waitFor } from '../support/wait-for.ts';

const initializing = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } },
};

describe.each(providerProfiles.map((profile) => [profile.name, profile] as const))('%s', (_name, profile) => {
  let server: AuthorizationServer;
  let gateway: Gateway;
  beforeAll(async () => {
    ({ server, gateway } = await startProvider(profile));
  });
  afterAll(async () => {
    await gateway?.stop();
    await server?.close();
  });

  // oauth-login.test.ts has the modern era, in which the login is the same.
  describe.each(['v1', 'v2'] as const)('and a client of the SDK %s', (major) => {
    const connect = async (options: OAuthClientOptions = {}) => {
      const client = await connectOAuth(gateway.url, server, major, {
        kept: { information: clientInformation(profile) },
        ...options,
      });
      onTestFinished(() => client[Symbol.asyncDispose]());
      return client;
    };

    test('logs in, calls, and steps up', async () => {
      const client = await connect();
      expect(await client.listTools()).toContain('echo');
      expect(client.logins).toBe(1);
      expect(await client.callTool('echo', { text: 'one' })).toContain('one');
      expect(client.logins).toBe(2);
      const { use, read } = profile.requested({ endpoint: gateway.url, origin: new URL(server.url).origin });
      expect(server.asked.at(-1)?.split(' ')).toEqual(expect.arrayContaining([use, read]));
      expect(await client.callTool('echo', { text: 'two' })).toContain('two');
      expect(client.logins).toBe(2);
    });

    test('refreshes its token without its user', async () => {
      const client = await connect({ refreshes: true });
      const first = client.kept.tokens?.access_token ?? '';
      // A token that is refused, as after its expiry.
      client.kept.tokens = { ...client.kept.tokens, access_token: first.replace(/.{8}$/, 'refused-') };
      expect(await client.listTools()).toContain('echo');
      expect(client.logins).toBe(1);
      expect(client.kept.tokens?.access_token).not.toBe(first);
    });

    test(`whose consent is revoked has to log in again; its token ends ${profile.endsRevokedTokens ? 'soon' : 'at its expiry'}`, async () => {
      const client = await connect({ refreshes: true });
      const token = client.kept.tokens?.access_token ?? '';
      const status = async () => (await post(gateway.url, initializing, { authorization: `Bearer ${token}` })).status;
      expect(await status()).toBe(200);
      await server.revoke();
      if (profile.endsRevokedTokens) await waitFor(async () => (await status()) === 401);
      else expect(await status()).toBe(200);
      client.kept.tokens = { ...client.kept.tokens, access_token: token.replace(/.{8}$/, 'refused-') };
      expect(await client.listTools()).toContain('echo');
      expect(client.logins).toBe(2);
    });

    test.runIf(profile.registers === true)('registers itself', async () => {
      const client = await connect({ kept: {} });
      expect(await client.listTools()).toContain('echo');
      expect(client.kept.information?.client_id).not.toBe(registeredClient.client_id);
    });
  });
});
