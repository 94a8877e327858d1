import { describe, expect, it, vi } from 'vitest';
import type { Authenticate, Challenge, Identity } from '../../../../src/core/auth/identity.ts';
import { Admission, type AdmissionOptions, behindAdmission } from '../../../../src/core/http/pipeline/admission.ts';
import type { Sender } from '../../../../src/core/http/request-context.ts';
import { CredentialMarks } from '../../../../src/core/keys/credential-marks.ts';
import type { Reason } from '../../../../src/core/protocol/faults.ts';
import { type ClientCredentials, parseCredential } from '../../../../src/core/protocol/http/client-credentials.ts';
import { noHeaders } from '../../../../src/core/protocol/http/forwarded-headers.ts';
import type { Quotas } from '../../../../src/core/quota/quotas.ts';
import { RequestPermit } from '../../../../src/core/quota/request-permit.ts';
import type { Server } from '../../../../src/core/server/server.ts';
import { StoreUnavailable } from '../../../../src/core/store/store-unavailable.ts';
import { reportFaultsTo } from '../../../../src/core/util/boundary.ts';
import { createHttpContext, type FakeRequest } from '../../../support/http-context.ts';
import { alice, createAdmissionOptions, createAuthorization, createCallLog } from '../admission-fixture.ts';

/** A server that gets a header and a claim of its clients. */
const serverWith = (as: ClientCredentials['as']): Server => {
  const parts = new Map([
    ['TOKEN', parseCredential('{header:X-Token}') ?? []],
    ['USER_ID', parseCredential('{claim:org}-{claim:sub}') ?? []],
  ]);
  return { name: 'git', credentials: { as, parts } } as unknown as Server;
};

/** Asks to be let in at such a server. */
async function admit(
  as: ClientCredentials['as'],
  claims: Identity['claims'],
  { token = 'secret', ...options }: { token?: string } & Partial<AdmissionOptions> = {},
): Promise<Sender | Challenge | 'gone'> {
  const identity = { ...alice, claims };
  const authenticate = (): Identity => identity;
  const admission = new Admission(createAdmissionOptions({ server: serverWith(as), authenticate, ...options }));
  const { context } = createHttpContext({ headers: { 'x-token': token } });
  const verdict = await admission.admit(context);
  return verdict === 'admitted' ? context.sender : verdict;
}

/** What an admission decides about one request. */
function decide(options: Partial<AdmissionOptions>, request?: FakeRequest) {
  const { context } = createHttpContext(request);
  return { context, verdict: new Admission(createAdmissionOptions(options)).admit(context) };
}

const challenge: Challenge = { reason: 'credentials_required', wwwAuthenticate: 'Bearer' };
const refusing = (reason: Reason): Pick<Quotas, 'admitRequest'> => ({ admitRequest: () => reason });

describe('the steps of an admission', () => {
  it('are over at once where nothing has to be awaited, and the sender is known then', () => {
    const { context, verdict } = decide({});
    expect(verdict).toBe('admitted');
    expect(context.sender).toEqual({ identity: alice, principal: alice.principal, forwarded: noHeaders });
    expect([context.endpoint?.server.name, context.identity]).toEqual(['git', alice]);
  });

  const foreign = { headers: { origin: 'https://evil.example' } };
  const anonymousAt = vi.fn<Authenticate>(() => challenge);
  it.each<[string, Partial<AdmissionOptions>, FakeRequest, unknown]>([
    ['the guard is first', { authenticate: anonymousAt }, foreign, { reason: 'origin_not_allowed' }],
    ['then the sender', { authenticate: () => challenge, quotas: refusing('quota_requests') }, {}, challenge],
    [
      'then the scopes of every request',
      { authorization: createAuthorization({ requiredScopes: ['write'] }), server: serverWith('variables') },
      {},
      {
        reason: 'insufficient_scope',
        wwwAuthenticate:
          'Bearer realm="mcp-gangway", error="insufficient_scope", scope="write", resource_metadata="https://gateway/metadata"',
      },
    ],
    [
      'then the credentials for the server',
      { server: serverWith('variables'), quotas: refusing('quota_requests') },
      {},
      { reason: 'credential_missing', data: { header: 'x-token' } },
    ],
    ['and the quotas are last', { quotas: refusing('quota_requests') }, {}, { reason: 'quota_requests' }],
  ])('come in their order: %s', (_, options, request, verdict) => {
    expect(decide(options, request).verdict).toMatchObject(verdict as object);
    expect(anonymousAt).not.toHaveBeenCalled();
  });

  it.each([
    ['an Origin', { origin: 'https://evil.example' }, { why: 'Origin', seen: 'https://evil.example' }],
    ['a Host', { host: 'evil.example' }, { why: 'Host', seen: 'evil.example' }],
    ['the length of forwarded headers', { 'x-token': 'a'.repeat(9_000) }, undefined],
  ])('name %s to the operator only', (_, headers, detail) => {
    const server = { name: 'git', forwardHeaders: ['x-token'] } as unknown as Server;
    const emit = vi.fn();
    decide({ server, emit }, { headers });
    expect(emit.mock.calls).toMatchObject([[{ type: 'sender-refused', server: 'git', challenge: { detail } }]]);
  });

  it('report to the operator who is refused, and not what a sender lacks or uses too much', () => {
    const emit = vi.fn();
    decide({ emit, authenticate: () => challenge });
    expect(emit.mock.calls).toEqual([[{ type: 'sender-refused', server: 'git', challenge }]]);
    decide({ emit, quotas: refusing('quota_requests') });
    decide({ emit, server: serverWith('headers') });
    expect(emit).toHaveBeenCalledTimes(1);
  });

  it('end with nobody if the client leaves while its credentials are checked', async () => {
    const admitRequest = vi.fn(() => new RequestPermit([], 0, 0));
    const { context, verdict } = decide({ authenticate: async () => alice, quotas: { admitRequest } });
    context.incoming.socket.destroy();
    expect(await verdict).toBe('gone');
    expect(admitRequest).not.toHaveBeenCalled();
  });

  it('reserve the bytes of the body, and hold the permit until the response has ended', () => {
    const release = vi.fn();
    const admitRequest = vi.fn(() => Object.assign(new RequestPermit([], 0, 0), { release }));
    const { context } = decide({ quotas: { admitRequest } }, { headers: { 'content-length': '77' } });
    expect(admitRequest).toHaveBeenCalledExactlyOnceWith(alice.principal, 77);
    expect(release).not.toHaveBeenCalled();
    context.outgoing.emit('close');
    expect(release).toHaveBeenCalledTimes(1);
  });
});

describe('an endpoint behind an admission', () => {
  function ask(options: Partial<AdmissionOptions>, request?: FakeRequest) {
    const serve = vi.fn();
    const { context, response } = createHttpContext(request);
    behindAdmission(createAdmissionOptions(options), { serve })(context);
    return { serve, context, response };
  }

  it('serves an admitted request in the same turn', () => {
    const { serve, context } = ask({});
    expect(serve.mock.calls).toEqual([[context]]);
  });

  it('serves a request whose sender is known later', async () => {
    const { serve } = ask({ authenticate: async () => alice });
    expect(serve).not.toHaveBeenCalled();
    await vi.waitFor(() => expect(serve).toHaveBeenCalledTimes(1));
  });

  it('answers any other with the challenge, and keeps its connection for a short time', () => {
    const { serve, response } = ask({ authenticate: () => challenge });
    expect(serve).not.toHaveBeenCalled();
    expect(response()).toMatchObject({
      status: 401,
      headers: { 'www-authenticate': 'Bearer', 'keep-alive': 'timeout=5' },
    });
  });

  it('keeps the connection of a client as ever if only the gateway lacks something', () => {
    const { response } = ask({ quotas: refusing('store_unavailable') });
    expect(response()?.status).toBe(503);
    expect(response()?.headers['keep-alive']).not.toBe('timeout=5');
  });

  it('keeps the connection of a proxy, which carries the requests of other clients', () => {
    const { response } = ask({ authenticate: () => challenge, isOfProxy: () => true });
    expect([response()?.status, response()?.headers['keep-alive']]).not.toEqual([401, 'timeout=5']);
  });

  it('reports a refusal as a call that has ended, whose sender is unknown', () => {
    const calls = createCallLog();
    ask({ calls, authenticate: () => challenge }, { method: 'POST' });
    expect(calls.refusals).toEqual(['credentials_required']);
    expect(calls.calls).toMatchObject([{ method: undefined, origin: { principal: undefined } }]);
  });

  it.each([
    ['a refused GET of a known sender', 'GET', 0],
    ['a refused POST of a known sender', 'POST', 1],
  ])('reports calls only where there could be some: %s', (_, method, count) => {
    const calls = createCallLog();
    ask({ calls, quotas: refusing('quota_requests') }, { method });
    expect([calls.refusals, calls.calls.length]).toEqual([['quota_requests'], count]);
    expect(calls.calls.every(({ origin }) => origin.principal === alice.principal)).toBe(true);
  });

  it('[E-03] answers internal if a check rejects, and is reported', async () => {
    const faults: unknown[] = [];
    const restore = reportFaultsTo((_seam, cause) => void faults.push(cause));
    const slip = new TypeError('a slip');
    const { serve, response } = ask({ authenticate: () => Promise.reject(slip) });
    await vi.waitFor(() => expect(response()?.status).toBe(500));
    restore();
    expect([faults, serve.mock.calls]).toEqual([[slip], []]);
  });
});

it('what a request brings for its server is made of its headers and of verified claims', async () => {
  expect(await admit('variables', { org: 'o1' })).toMatchObject({
    forwarded: { TOKEN: 'secret', USER_ID: 'o1-alice' },
  });
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
  expect(one).toEqual({
    issuer: 'i',
    subject: 'alice',
    client: 'c',
    credentials: expect.stringMatching(/^[\w-]{43}$/),
  });
  expect(one.credentials).not.toBe(other.credentials);
  expect(await principalOf('headers')).toEqual({ issuer: 'i', subject: 'alice', client: 'c' });
});

it('[P7] while the key of marks cannot be had a request is told to come again', async () => {
  const away = async (): Promise<never> => {
    throw new StoreUnavailable('unreachable');
  };
  const marks = new CredentialMarks({ all: away, reread: away });
  expect(await admit('variables', { org: 'o1' }, { marks })).toEqual({ reason: 'store_unavailable' });
});
