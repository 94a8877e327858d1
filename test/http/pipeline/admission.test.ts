import { expect, it } from 'vitest';
import { anonymousIdentity, type Challenge, type Identity } from '../../../src/auth/identity.ts';
import { createOriginRules } from '../../../src/auth/origin-rules.ts';
import { Authorization } from '../../../src/auth/scopes/authorization.ts';
import { ScopeRules } from '../../../src/auth/scopes/scope-rules.ts';
import { CredentialMarks } from '../../../src/era/keys/credential-marks.ts';
import { configuredKeys } from '../../../src/era/keys/state-keys.ts';
import { Admission } from '../../../src/http/pipeline/admission.ts';
import type { Sender } from '../../../src/http/request-context.ts';
import { type ClientCredentials, parseCredential } from '../../../src/protocol/http/client-credentials.ts';
import type { Server } from '../../../src/server/server.ts';
import { StoreUnavailable } from '../../../src/store/store-unavailable.ts';
import { createHttpContext } from '../../support/http-context.ts';

const keys = configuredKeys(['k'.repeat(32)]);

/** Asks to be let in at a server that gets a header and a claim of its clients. */
async function admit(
  as: ClientCredentials['as'],
  claims: Identity['claims'],
  { token = 'secret', marks = new CredentialMarks(keys) } = {},
): Promise<Sender | Challenge | 'gone'> {
  const parts = new Map([
    ['TOKEN', parseCredential('{header:X-Token}') ?? []],
    ['USER_ID', parseCredential('{claim:org}-{claim:sub}') ?? []],
  ]);
  const server = { name: 'git', credentials: { as, parts } } as unknown as Server;
  const originRules = createOriginRules({ host: '127.0.0.1', allowOrigin: [], allowHost: [] });
  const authorization = new Authorization({
    rules: new ScopeRules({ requiredScopes: [], toolScopes: {} }),
    resourceMetadata: new Map(),
  });
  const identity = { ...anonymousIdentity, principal: { issuer: 'i', subject: 's', client: 'c' }, claims };
  const authenticate = (): Identity => identity;
  const admission = new Admission({ maxBodyBytes: 1_000, server, originRules, marks, authorization, authenticate });
  const { context } = createHttpContext({ headers: { 'x-token': token } });
  const verdict = await admission.admit(context);
  return verdict === 'admitted' ? context.sender : verdict;
}

it('what a request brings for its server is made of its headers and of verified claims', async () => {
  expect(await admit('variables', { org: 'o1' })).toMatchObject({ forwarded: { TOKEN: 'secret', USER_ID: 'o1-s' } });
});

it('a claim that is missing is named', async () => {
  expect(await admit('variables', {})).toEqual({ reason: 'claim_missing', data: { claim: 'org' } });
});

it('[P11] what it makes at a STDIO server belongs to its sender with these credentials alone', async () => {
  const principalOf = async (as: ClientCredentials['as'], token?: string): Promise<Sender['principal']> =>
    ((await admit(as, { org: 'o1' }, { ...(token && { token }) })) as Sender).principal;
  const [one, same, other] = await Promise.all([
    principalOf('variables'),
    principalOf('variables'),
    principalOf('variables', 'other'),
  ]);
  expect(one).toEqual(same);
  expect(one).toEqual({ issuer: 'i', subject: 's', client: 'c', credentials: expect.stringMatching(/^[\w-]{43}$/) });
  expect(one.credentials).not.toBe(other.credentials);
  expect(await principalOf('headers')).toEqual({ issuer: 'i', subject: 's', client: 'c' });
});

it('[P7] while the key of marks cannot be had a request is told to come again', async () => {
  const away = async (): Promise<never> => {
    throw new StoreUnavailable('unreachable');
  };
  const marks = new CredentialMarks({ all: away, reread: away });
  expect(await admit('variables', { org: 'o1' }, { marks })).toEqual({ reason: 'store_unavailable' });
});
