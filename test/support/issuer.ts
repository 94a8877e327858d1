import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  type CryptoKey,
  exportJWK,
  generateKeyPair,
  type JWK,
  type JWTHeaderParameters,
  type JWTPayload,
  SignJWT,
} from 'jose';

type Answer = (incoming: IncomingMessage, outgoing: ServerResponse) => void;

/** A key pair of an issuer. */
export interface SigningKey {
  readonly kid: string;
  readonly alg: string;
  readonly privateKey: CryptoKey;
  readonly publicJwk: JWK;
}

/** The contents of a token in addition to the defaults. A claim or header with undefined is left out. */
export interface TokenWishes {
  readonly claims?: Readonly<Record<string, unknown>>;
  readonly header?: Readonly<Record<string, unknown>>;
  /** The key to use instead of the newest one. */
  readonly key?: SigningKey;
}

/** Metadata, keys and tokens of an issuer that a test controls, including wrong ones. */
export interface Issuer {
  readonly url: string;
  /** The requested paths. */
  readonly asked: readonly string[];
  /** The published keys, the newest last. */
  keys: readonly SigningKey[];
  /** Answers by path that replace the normal ones. */
  readonly instead: Map<string, Answer>;
  /** Signs with another key from now on. `keys` must still name it. */
  newKey(alg?: string, kid?: string): Promise<SigningKey>;
  /** By default, a token for `https://mcp.example.com/mcp` that is valid for five minutes. */
  token(wishes?: TokenWishes): Promise<string>;
  close(): Promise<void>;
}

export const usualAudience = 'https://mcp.example.com/mcp';

const json = (value: unknown): Answer => {
  return (_incoming, outgoing) => {
    outgoing.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value));
  };
};

const status =
  (code: number): Answer =>
  (_incoming, outgoing) =>
    void outgoing.writeHead(code).end();

/** An answer with this status and no body. */
export const answerWith = status;

/** Starts an issuer on a free port. The caller closes it. */
export async function startIssuer(path = ''): Promise<Issuer> {
  const asked: string[] = [];
  const instead = new Map<string, Answer>();
  const server = createServer((incoming, outgoing) => {
    const { url = '' } = incoming;
    asked.push(url);
    const metadata = { issuer: issuer.url, jwks_uri: `${origin}/keys` };
    const usual =
      url === `/.well-known/oauth-authorization-server${path}`
        ? json(metadata)
        : url === '/keys'
          ? json({ keys: issuer.keys.map(({ publicJwk }) => publicJwk) })
          : status(404);
    (instead.get(url) ?? usual)(incoming, outgoing);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  let made = 0;

  const newKey = async (alg = 'ES256', kid = `key-${++made}`): Promise<SigningKey> => {
    const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
    return { kid, alg, privateKey, publicJwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' } };
  };

  const issuer: Issuer = {
    url: origin + path,
    asked,
    keys: [await newKey()],
    instead,
    newKey,
    async token({ claims = {}, header = {}, key = issuer.keys.at(-1) as SigningKey } = {}) {
      const now = Math.floor(Date.now() / 1_000);
      const payload = {
        ...{ iss: issuer.url, sub: 'ada', client_id: 'app', aud: usualAudience, iat: now, exp: now + 300 },
        ...claims,
      };
      const head = { alg: key.alg, kid: key.kid, typ: 'at+jwt', ...header };
      return new SignJWT(definedOnly(payload) as JWTPayload)
        .setProtectedHeader(definedOnly(head) as unknown as JWTHeaderParameters)
        .sign(key.privateKey);
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  return issuer;
}

const definedOnly = (value: object): Record<string, unknown> =>
  Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined));
