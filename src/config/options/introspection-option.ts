import * as z from 'zod/mini';
import { duration, members, plainUrl } from './option-kinds.ts';

/** How the gateway asks an issuer about tokens. */
export interface Introspection {
  /** The URL of the endpoint; absent to use the one in the metadata of the issuer. */
  readonly url?: string | undefined;
  /** The name and the password of the gateway at the endpoint. */
  readonly clientId?: string | undefined;
  readonly clientSecret?: string | undefined;
  /** The issuer of the tokens, if there are several issuers. */
  readonly issuer?: string | undefined;
  /** The tokens that the gateway asks about. */
  readonly tokens: 'opaque' | 'all';
  readonly protocol: 'rfc7662' | 'tokeninfo';
  /** How long an answer is used, in milliseconds. */
  readonly cache: number;
}

/** How long an answer is used. */
const cache = duration('30s', '', { min: '1s', max: '5m' });

const text = z.string({ error: 'must be a string' }).check(z.minLength(1, { error: 'must not be empty' }));

const choice = <const T extends readonly string[]>(values: T) =>
  z._default(z.enum(values, { error: `must be one of ${values.join(', ')}` }), values[0] as T[number]);

/** The schema of the option `auth.oauth.introspection`. */
export const introspectionSchema = z.optional(
  members(
    {
      url: z.optional(plainUrl(true)),
      clientId: z.optional(text),
      clientSecret: z.optional(text),
      issuer: z.optional(plainUrl(true)),
      tokens: choice(['opaque', 'all']),
      protocol: choice(['rfc7662', 'tokeninfo']),
      cache: z._default(cache.schema, cache.default),
    },
    'must be an object with only url, clientId, clientSecret, issuer, tokens, protocol and cache',
  ).check(
    z.refine(({ clientId, clientSecret }) => clientSecret === undefined || clientId !== undefined, {
      error: 'has clientSecret without clientId',
    }),
    z.refine(({ protocol, url }) => protocol !== 'tokeninfo' || url !== undefined, {
      error: 'needs url with the protocol tokeninfo, such as https://oauth2.googleapis.com/tokeninfo',
    }),
  ),
) as z.ZodMiniType<Introspection | undefined>;
