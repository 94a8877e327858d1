import { decodeJwt } from 'jose';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import {
  type AuthorizationServer,
  registeredClient,
  startAuthorizationServer,
} from '../support/authorization-server.ts';
import { everythingFixture, type Gateway, startGateway } from '../support/gateway.ts';
import { post } from '../support/http-client.ts';
import { connectOAuth, majors, type OAuthClientOptions } from '../support/oauth-client.ts';
import { findFreePort } from '../support/redis-process.ts';
import { waitFor } from '../support/wait-for.ts';

const scopes = 'mcp:use files:read files:write';

let server: AuthorizationServer;
let gateway: Gateway;
beforeAll(async () => {
  server = await startAuthorizationServer({ scopes });
  gateway = await startProtected(server);
});
afterAll(async () => {
  await gateway.stop();
  await server.close();
});

async function startProtected(issuer: AuthorizationServer, more: readonly string[] = []) {
  const port = await findFreePort();
  const rules = [
    '--required-scopes',
    'mcp:use',
    '--tool-scopes',
    'echo=files:read',
    '--tool-scopes',
    'test_simple_*=files:read files:write',
  ];
  const publicUrl = `http://127.0.0.1:${port}`;
  const args = ['--auth-issuer', issuer.url, '--public-url', publicUrl, ...rules, ...more];
  return startGateway({ port, args, command: everythingFixture, isStoppedWithTest: false });
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

  test('whose token expires gets the next one without its user, and goes on in its session', async () => {
    const brief = await startAuthorizationServer({ scopes, tokenS: 2 });
    const strict = await startProtected(brief, ['--auth-clock-skew-ms', '0']);
    onTestFinished(async () => {
      await strict.stop();
      await brief.close();
    });
    const client = await connectOAuth(strict.url, brief, major, { refreshes: true });
    onTestFinished(() => client[Symbol.asyncDispose]());
    const first = client.kept.tokens?.access_token ?? '';
    const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
    const askWith = (token: string) => post(strict.url, ping, { authorization: `Bearer ${token}` });
    const refusal = await waitFor(
      async () => {
        const answer = await askWith(first);
        return answer.status === 401 ? answer : undefined;
      },
      { what: 'the end of the first token' },
    );
    expect(refusal.headers['www-authenticate']).toMatch(/error="invalid_token"/);
    expect(await client.listTools()).toContain('echo');
    expect(client.logins).toBe(1);
    expect(client.kept.tokens?.access_token).not.toBe(first);
  });
});
