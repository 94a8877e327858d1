import { DpopSession } from '@modelcontextprotocol/client';
import { decodeJwt } from 'jose';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import {
  type AuthorizationServer,
  registeredClient,
  startAuthorizationServer,
} from '../support/authorization-server.ts';
import { everythingFixture } from '../support/gateway.ts';
import { post } from '../support/http-client.ts';
import { type LocalGateway, startLocalGateway } from '../support/local-gateway.ts';
import { connectOAuth, majors, type OAuthClientOptions } from '../support/oauth-client.ts';
import { findFreePort } from '../support/redis-process.ts';

const scopes = 'mcp:use files:read files:write';

let server: AuthorizationServer;
let gateway: LocalGateway;
beforeAll(async () => {
  server = await startAuthorizationServer(scopes);
  gateway = await startProtected(server);
});
afterAll(async () => {
  await gateway.stop();
  await server.close();
});

async function startProtected(issuer: AuthorizationServer) {
  const port = await findFreePort();
  const rules = [
    '--defaults.scopes.required',
    'mcp:use',
    '--defaults.scopes.tools',
    'echo=files:read',
    '--defaults.scopes.tools',
    'test_simple_*=files:read files:write',
  ];
  const publicUrl = `http://127.0.0.1:${port}`;
  const args = ['--auth.oauth.issuers', issuer.url, '--public-url', publicUrl, ...rules];
  return startLocalGateway({ port, args, command: everythingFixture, isStoppedWithTest: false });
}

describe.each(Object.keys(majors) as (keyof typeof majors)[])('a client of the SDK %s', (major) => {
  const connect = async (options?: OAuthClientOptions) => {
    const client = await connectOAuth(gateway.url, server, major, options);
    onTestFinished(() => client[Symbol.asyncDispose]());
    return client;
  };

  test('finds its authorization server, registers, logs in, and gets a token for this endpoint alone', async () => {
    const client = await connect();
    expect(await client.listTools()).toContain('echo');
    expect(client.logins).toBe(1);
    expect(decodeJwt(client.kept.tokens?.access_token ?? '')).toMatchObject({
      iss: server.url,
      aud: gateway.url,
      sub: 'ada',
      scope: 'mcp:use',
    });
  });

  test('that is registered beforehand logs in as itself', async () => {
    const client = await connect({ kept: { information: registeredClient } });
    expect(await client.listTools()).toContain('echo');
    expect(decodeJwt(client.kept.tokens?.access_token ?? '')).toMatchObject({ client_id: 'registered-app' });
  });

  test('[B20] steps up where a tool needs more, keeps what it had, and its session goes on', async () => {
    // Registered on the way, it would be held to the scopes of its first login by this authorization server.
    const client = await connect({ kept: { information: registeredClient } });
    const { sessionId } = client;
    expect(await client.callTool('echo', { text: 'one' })).toContain('one');
    expect(client.logins).toBe(2);
    expect(server.asked.at(-1)?.split(' ').sort()).toEqual(['files:read', 'mcp:use']);
    expect(await client.callTool('test_simple_text')).toContain('simple text');
    expect(client.logins).toBe(3);
    expect(server.asked.at(-1)?.split(' ').sort()).toEqual(['files:read', 'files:write', 'mcp:use']);
    expect(await client.callTool('echo', { text: 'two' })).toContain('two');
    expect(client.logins).toBe(3);
    expect(client.sessionId).toBe(sessionId);
  });

  test('whose token is refused gets the next one without its user, and goes on in its session', async () => {
    const client = await connect({ refreshes: true });
    const { sessionId, logins } = client;
    expect(logins).toBe(1);
    // As when it has expired, at a time that no load can move.
    const first = client.kept.tokens?.access_token ?? '';
    client.kept.tokens = { ...client.kept.tokens, access_token: first.replace(/[^.]+$/, 'x') };
    expect(await client.listTools()).toContain('echo');
    expect(client).toMatchObject({ sessionId, logins });
    expect(decodeJwt(client.kept.tokens?.access_token ?? '').jti).not.toBe(decodeJwt(first).jti);
  });
});

describe.each(['v2', 'v2 in the modern era'] as const)('a client of the SDK %s with DPoP', (major) => {
  test('[B19] [B20] logs in, calls, steps up and refreshes with a key, without which its token is worth nothing', async () => {
    const dpop = await DpopSession.create();
    const kept = { information: registeredClient };
    const client = await connectOAuth(gateway.url, server, major, { kept, refreshes: true, dpop });
    onTestFinished(() => client[Symbol.asyncDispose]());
    expect(await client.listTools()).toContain('echo');
    const token = client.kept.tokens?.access_token ?? '';
    expect(decodeJwt(token)).toMatchObject({ aud: gateway.url, cnf: { jkt: dpop.thumbprint } });
    expect(await client.callTool('echo', { text: 'hi' })).toBe('hi');
    expect(client.logins).toBe(2);
    const stolen = client.kept.tokens?.access_token ?? '';
    for (const authorization of [`Bearer ${stolen}`, `DPoP ${stolen}`]) {
      const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
      expect((await post(gateway.url, ping, { authorization })).status).toBe(401);
    }
    client.kept.tokens = { ...client.kept.tokens, access_token: stolen.replace(/.{8}$/, 'refused-') };
    expect(await client.callTool('echo', { text: 'again' })).toBe('again');
    expect(decodeJwt(client.kept.tokens?.access_token ?? '')).toMatchObject({ cnf: { jkt: dpop.thumbprint } });
    expect(client.logins).toBe(2);
  });
});
