// An issuer of access tokens: its keys on loopback, and a token of usual size.
import { once } from 'node:events';
import http from 'node:http';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';

/** What the gateway is told to be reached at; nobody calls it so. */
export const publicUrl = 'https://mcp.example.com';

/** Starts one, with a token for `/mcp` that outlives any run. */
export async function startIssuer() {
  const { publicKey, privateKey } = await generateKeyPair('RS256');
  const keys = [{ ...(await exportJWK(publicKey)), kid: 'bench', alg: 'RS256', use: 'sig' }];
  const server = http.createServer((request, response) => {
    const isKeys = request.url === '/keys';
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(isKeys ? { keys } : { issuer: url, jwks_uri: `${url}/keys` }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${server.address().port}`;
  const claims = {
    scope: 'openid mcp:use files:read files:write',
    client_id: 'bench',
    email: 'ada@example.com',
    groups: ['staff', 'bench'],
  };
  const token = await new SignJWT(claims)
    .setProtectedHeader({ alg: 'RS256', kid: 'bench', typ: 'at+jwt' })
    .setIssuer(url)
    .setAudience(`${publicUrl}/mcp`)
    .setSubject('f6c9d8a0-4d1b-4c53-9d36-2f0e6f2f3a51')
    .setIssuedAt()
    .setExpirationTime('12h')
    .sign(privateKey);
  return {
    url,
    token,
    stop() {
      server.closeAllConnections();
      server.close();
    },
  };
}
