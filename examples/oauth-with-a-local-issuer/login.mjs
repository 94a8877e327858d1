// Logs in as an MCP client does, and prints the access token:
//
//   node login.mjs http://127.0.0.1:8080/mcp demo:use
//
// The client asks the gateway for the URL of its authorization server, registers there, and opens the login page. The example's
// issuer approves every login without user input, so this program follows the redirects in place of a browser.
import { auth } from '@modelcontextprotocol/client';

const [serverUrl, scope] = process.argv.slice(2);
const redirectUrl = 'http://127.0.0.1:9401/callback';

let information;
let tokens;
let verifier;
let page;
let discovered;
const provider = {
  redirectUrl,
  clientMetadata: {
    client_name: 'login',
    redirect_uris: [redirectUrl],
    application_type: 'native',
    token_endpoint_auth_method: 'none',
    grant_types: ['authorization_code', 'refresh_token'],
  },
  clientInformation: () => information,
  saveClientInformation: (value) => {
    information = value;
  },
  tokens: () => tokens,
  saveTokens: (value) => {
    tokens = value;
  },
  redirectToAuthorization: (value) => {
    page = value;
  },
  saveCodeVerifier: (value) => {
    verifier = value;
  },
  codeVerifier: () => verifier,
  saveDiscoveryState: (value) => {
    discovered = value;
  },
  discoveryState: () => discovered,
};

/** Follows the issuer's redirects, and keeps its cookies, until the URL is the client's redirect URL. */
async function browse(start) {
  const cookies = new Map();
  let at = start;
  while (!at.href.startsWith(redirectUrl)) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(at, { redirect: 'manual', headers: { cookie } });
    for (const line of response.headers.getSetCookie()) {
      const [name, value] = line.split(';')[0].split('=');
      cookies.set(name, value);
    }
    const location = response.headers.get('location');
    if (location === null) throw new Error(`${at} was answered with ${response.status}`);
    at = new URL(location, at);
  }
  return at.searchParams;
}

await auth(provider, { serverUrl, scope });
const answer = await browse(page);
await auth(provider, { serverUrl, scope, authorizationCode: answer.get('code'), iss: answer.get('iss') });
process.stdout.write(`${tokens.access_token}\n`);
