import * as z from 'zod/mini';
import { type ClientCredentials, parseCredential } from '../../core/protocol/http/client-credentials.ts';
import type { ServerAddress } from '../server-url.ts';
import type { UpstreamIdentity } from './identity-options.ts';
import { map } from './option-kinds.ts';

const entries = z
  .record(
    z.string(),
    z.string({ error: 'must be a string' }).check(
      z.refine((text) => parseCredential(text) !== undefined, {
        error:
          'must contain a header or a claim, such as {header:X-Token} or Bearer {claim:token}, and no other braces',
      }),
    ),
    { error: 'must be NAME=VALUE on the command line and an object of strings in the file' },
  )
  .check(
    z.refine((value) => Object.values(value).every((text) => /^[\x20-\x7e]*$/.test(text)), {
      error: 'must be visible ASCII on one line',
    }),
  );

/** The option for the credentials that a server receives from each client. */
export const credentialsOption = map(
  'map',
  entries,
  'Client credential for a server: NAME={header:X-Token} or NAME={claim:sub}; repeatable. For a STDIO server, NAME is an environment variable. For a server at an http(s):// or ws(s):// URL, NAME is a header.',
);

/** The settings of a server that concern client credentials. */
interface CredentialSettings {
  readonly credentials: Readonly<Record<string, string>>;
  readonly address?: ServerAddress | undefined;
}

/** The client credentials that a server receives, parsed; undefined if it receives none. */
export const configuredCredentials = ({ credentials, address }: CredentialSettings): ClientCredentials | undefined =>
  parsedCredentials(credentials, address === undefined);

/** As `configuredCredentials`. @param isLocal true for a STDIO server */
export function parsedCredentials(
  credentials: CredentialSettings['credentials'],
  isLocal: boolean,
): ClientCredentials | undefined {
  const given = Object.entries(credentials);
  if (given.length === 0) return undefined;
  const parts = given.map(
    ([name, text]) => [isLocal ? name : name.toLowerCase(), parseCredential(text) ?? []] as const,
  );
  return { as: isLocal ? 'variables' : 'headers', parts: new Map(parts) };
}

/**
 * True if the server receives headers, credentials or tokens of its clients, and so may behave differently for each of
 * them.
 */
export const usesClientCredentials = ({
  credentials,
  forwardHeaders,
  identity,
}: Pick<CredentialSettings, 'credentials'> & {
  readonly forwardHeaders: readonly string[];
  readonly identity: UpstreamIdentity | undefined;
}): boolean => Object.keys(credentials).length > 0 || forwardHeaders.length > 0 || identity?.grant === 'token_exchange';
