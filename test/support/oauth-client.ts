import {
  Client as ClientV2,
  type DpopSession,
  StreamableHTTPClientTransport as HttpV2,
} from '@modelcontextprotocol/client';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as HttpV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { type AuthorizationServer, callbackUrl } from './authorization-server.ts';

/** The state that an SDK client keeps between its requests for authorization. */
export interface Kept {
  information?: { client_id: string };
  tokens?: Tokens;
}

interface Tokens {
  readonly access_token: string;
  readonly refresh_token?: string;
}

export interface OAuthClientOptions {
  readonly kept?: Kept;
  /**
   * It keeps refresh tokens too. With them the SDK v1 does not step up: it refreshes the token that has too few scopes.
   */
  readonly refreshes?: boolean;
  /** The key to which its tokens are bound (DPoP), which only the SDK v2 has. */
  readonly dpop?: DpopSession;
}

/** An official SDK client that logs in when required. Its user consents to everything. */
export interface OAuthClient extends AsyncDisposable {
  readonly kept: Kept;
  /** The number of times that the user was asked. */
  readonly logins: number;
  readonly sessionId: string | undefined;
  callTool(name: string, args?: object): Promise<string>;
  listTools(): Promise<string[]>;
}

const clientInfo = { name: 'oauth-test-client', version: '1.0.0' };

/** The classes and options with which each major version connects. */
export const majors = {
  v1: { Client: ClientV1, Transport: HttpV1, options: {} },
  v2: { Client: ClientV2, Transport: HttpV2, options: {} },
  'v2 in the modern era': { Client: ClientV2, Transport: HttpV2, options: { versionNegotiation: { mode: 'auto' } } },
} as const;

/**
 * Connects a client of the SDK, with authorization. It logs in again whenever it is told to, and then does again what
 * it was at, as applications do.
 */
export async function connectOAuth(
  url: string,
  server: AuthorizationServer,
  major: keyof typeof majors,
  { kept = {}, refreshes = false, dpop }: OAuthClientOptions = {},
): Promise<OAuthClient> {
  let logins = 0;
  let verifier = '';
  let asked: URL | undefined;
  const provider = {
    redirectUrl: callbackUrl,
    clientMetadata: {
      client_name: 'test',
      redirect_uris: [callbackUrl],
      application_type: 'native',
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code', 'refresh_token'],
    },
    clientInformation: () => kept.information,
    saveClientInformation(information: { client_id: string }) {
      kept.information = information;
    },
    tokens: () => kept.tokens,
    saveTokens(tokens: Tokens) {
      const { refresh_token: _dropped, ...others } = tokens;
      kept.tokens = refreshes ? tokens : others;
    },
    /** The SDK calls this when the authorization server refuses the refresh token. */
    invalidateCredentials(what: string) {
      if (what === 'all' || what === 'tokens') delete kept.tokens;
    },
    redirectToAuthorization(to: URL) {
      asked = to;
    },
    saveCodeVerifier(text: string) {
      verifier = text;
    },
    codeVerifier: () => verifier,
    ...(dpop && { dpop: () => dpop }),
  };

  const { Client, Transport, options } = majors[major];
  // The two majors have types of their own for the same things.
  // biome-ignore lint/suspicious/noExplicitAny: see above
  const newTransport = (): any => new (Transport as any)(new URL(url), { authProvider: provider });
  let transport = newTransport();
  const login = async (): Promise<void> => {
    if (asked === undefined) throw new Error('nobody was asked to log in');
    const to = asked;
    asked = undefined;
    logins += 1;
    const told = await server.browse(to);
    await transport.finishAuth(major === 'v1' ? told.get('code') : told);
  };
  /** Runs an action, and repeats it each time after the user was asked. */
  const authorized = async <T>(work: () => Promise<T>): Promise<T> => {
    for (let tries = 0; ; tries++) {
      try {
        return await work();
      } catch (error) {
        if (asked === undefined || tries === 3) throw error;
        await login();
      }
    }
  };

  // biome-ignore lint/suspicious/noExplicitAny: see above
  let client: any;
  await authorized(async () => {
    client = new Client(clientInfo, options as object);
    transport = newTransport();
    await client.connect(transport);
  });
  return {
    kept,
    get logins() {
      return logins;
    },
    get sessionId() {
      return transport.sessionId;
    },
    callTool: (name, args = {}) =>
      authorized(async () => {
        const result = await client.callTool({ name, arguments: args });
        return result.content[0]?.text ?? '';
      }),
    listTools: () =>
      authorized(async () => (await client.listTools()).tools.map((tool: { name: string }) => tool.name)),
    [Symbol.asyncDispose]: () => client.close(),
  };
}
