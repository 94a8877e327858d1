import { readFileSync } from 'node:fs';
import { describe, expect, it, vi } from 'vitest';
import { type Authenticator, createAuthenticate } from '../../../src/core/auth/authenticate.ts';
import type { Identity } from '../../../src/core/auth/identity.ts';
import { refusalCauses } from '../../../src/core/auth/refusal-causes.ts';
import { costOf } from '../../support/cpu-time.ts';
import { requestWith } from './authentication-request.ts';

const identityOf = (subject: string): Identity => ({
  principal: { issuer: 'i', subject, client: '' },
  scopes: undefined,
  expiresAtMs: undefined,
  claims: {},
});
const [alice, bob] = [identityOf('alice'), identityOf('bob')];
/** Knows one token. */
const knows =
  (of: string, identity: Identity): Authenticator =>
  (_incoming, token) =>
    token?.text === of ? identity : undefined;

describe('authentication', () => {
  const authenticate = createAuthenticate({ authenticators: [knows('a', alice), knows('b', bob), knows('a', bob)] });

  it('is decided by the first that recognises the credentials, at once', () => {
    expect(authenticate(requestWith({ authorization: 'Bearer a' }))).toBe(alice);
    expect(authenticate(requestWith({ authorization: 'Bearer b' }))).toBe(bob);
  });

  it('[P11] looks at each request of a connection, not only at its first', () => {
    const first = requestWith({ authorization: 'Bearer a' });
    const { socket } = first;
    const next = (headers: Record<string, string>) => authenticate(Object.assign(requestWith(headers), { socket }));
    expect(authenticate(first)).toBe(alice);
    expect(next({ authorization: 'Bearer a' })).toBe(alice);
    expect(next({ authorization: 'Bearer b' })).toBe(bob);
    expect(next({ authorization: 'Basic b' })).toMatchObject({ reason: 'credentials_invalid' });
    expect(next({})).toMatchObject({ reason: 'credentials_required' });
    expect(next({ authorization: 'Bearer a' })).toBe(alice);
  });

  it.each(['bearer a', 'BEARER a', 'bEaReR   a', 'Bearer a '])(
    'takes the scheme however it is written: %s',
    (authorization) => {
      expect(authenticate(requestWith({ authorization }))).toBe(alice);
    },
  );

  it.each([
    'Basic YTpi',
    'Bearer',
    'Bearer ',
    'Bearera',
    'Bearer a b',
    'Bearer a,b',
    'Bearer "a"',
    'a',
    '',
    'Bearer c',
    'Basic a, Bearer a',
  ])('[B19] refuses what is nobody’s: %j', (authorization) => {
    expect(authenticate(requestWith({ authorization }))).toEqual({
      reason: 'credentials_invalid',
      wwwAuthenticate: expect.stringMatching(
        /^Bearer realm="mcp-gangway", error="invalid_token", error_description="The [\w ]+"$/,
      ),
      data: { error: 'invalid_token', error_description: expect.stringMatching(/^The [\w ]+$/) },
      detail: { why: expect.stringMatching(/^unknown_key$|^no_bearer$/) },
    });
  });

  it('[B19] names no error to who shows nothing (RFC 6750, section 3.1)', () => {
    expect(authenticate(requestWith())).toEqual({
      reason: 'credentials_required',
      wwwAuthenticate: 'Bearer realm="mcp-gangway"',
    });
  });

  it.each(['/mcp?access_token=a', '/mcp?x=1&access_token=a', '/mcp?access%5Ftoken=a', '/mcp?access_token'])(
    '[B19] refuses a token in the query, also beside a good one: %s',
    (url) => {
      const asked = vi.fn(() => alice);
      const inQuery = createAuthenticate({ authenticators: [asked] });
      expect(inQuery(requestWith({ authorization: 'Bearer a' }, { url }))).toEqual({
        reason: 'credentials_in_query',
        wwwAuthenticate: 'Bearer realm="mcp-gangway", error="invalid_request"',
        data: { error: 'invalid_request' },
      });
      expect(asked).not.toHaveBeenCalled();
    },
  );

  it('lets other queries pass', () => {
    const request = requestWith({ authorization: 'Bearer a' }, { url: '/messages?token=access_token' });
    expect(authenticate(request)).toBe(alice);
  });

  it('[B19] every 401 says how to do better, with what the operator has to add, and other refusals do not', async () => {
    const parametersFor = ({ url }: { url?: string | undefined }) => [
      `resource_metadata="https://x${url}"`,
      'scope="mcp"',
    ];
    const outcomes: Record<string, ReturnType<Authenticator>> = {
      bad: { reason: 'credentials_invalid' },
      late: Promise.resolve({ reason: 'credentials_invalid' }),
      own: { reason: 'credentials_invalid', wwwAuthenticate: 'Own' },
      no: { reason: 'untrusted_proxy' },
    };
    const of = createAuthenticate({ authenticators: [(_, token) => outcomes[token?.text ?? '']], parametersFor });
    const said = async (token: string) => {
      const outcome = await of(requestWith({ authorization: `Bearer ${token}` }));
      return 'reason' in outcome && outcome.wwwAuthenticate;
    };
    const all = 'Bearer realm="mcp-gangway", error="invalid_token", resource_metadata="https://x/mcp", scope="mcp"';
    const unknown = all.replace('_token"', '_token", error_description="The key is not valid here"');
    expect([await said('bad'), await said('late'), await said('unknown')]).toEqual([all, all, unknown]);
    expect([await said('own'), await said('no')]).toEqual(['Own', undefined]);
  });

  it('takes no more time for a long header than its length', () => {
    const authorization = `Bearer ${'='.repeat(64 * 1024)} x`;
    for (const header of [authorization, `bearer${' '.repeat(64 * 1024)}"`])
      expect(costOf(() => void authenticate(requestWith({ authorization: header })), 5)).toBeLessThan(5);
  });
});

it('[P-05] each cause of a refusal is explained in docs/oauth.md', () => {
  const page = readFileSync(new URL('../../../docs/oauth.md', import.meta.url), 'utf8');
  const names = Object.keys(refusalCauses).map((name) => (name.startsWith('proof_') ? 'proof_…' : name));
  expect(names.filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
});
