import { describe, expect, it } from 'vitest';
import { noHeaders } from '../../../../src/core/protocol/http/forwarded-headers.ts';
import {
  challengeTo,
  isUpstreamRefusal,
  mayBeOrdinaryError,
  noteChallenge,
  readChallenge,
  reasonWithChallenge,
} from '../../../../src/core/protocol/http/upstream-challenge.ts';

const header = 'Bearer error="invalid_token"';

describe('readChallenge', () => {
  it.each([401, 403] as const)('reads the header of a %i', (status) => {
    expect(readChallenge(status, { 'www-authenticate': header })).toEqual({ status, wwwAuthenticate: header });
    expect(readChallenge(status, {})).toEqual({ status, wwwAuthenticate: undefined });
  });

  it.each([200, 400, 402, 404, 407, 500])('finds none in a %i', (status) => {
    expect(readChallenge(status, { 'www-authenticate': header })).toBeUndefined();
  });

  it('joins several headers', () => {
    expect(readChallenge(401, { 'www-authenticate': ['Basic', header] })?.wwwAuthenticate).toBe(`Basic, ${header}`);
  });

  it.each([
    ['a line break', 'Bearer\r\nSet-Cookie: a=b'],
    ['a NUL', 'Bearer \0'],
    ['a letter that is not ASCII', 'Bearer realm="ü"'],
    ['more than 4 KiB', 'x'.repeat(4 * 1024 + 1)],
  ])('[P8] drops a header with %s, and keeps the challenge', (_, text) => {
    expect(readChallenge(401, { 'www-authenticate': text })).toEqual({ status: 401, wwwAuthenticate: undefined });
  });

  it('keeps a header of 4 KiB', () => {
    const text = 'x'.repeat(4 * 1024);
    expect(readChallenge(401, { 'www-authenticate': text })?.wwwAuthenticate).toBe(text);
  });
});

it('only a 403 without a challenge may be an ordinary error', () => {
  expect(mayBeOrdinaryError(403, {})).toBe(true);
  expect(mayBeOrdinaryError(403, { 'www-authenticate': header })).toBe(false);
  expect(mayBeOrdinaryError(401, {})).toBe(false);
});

describe('a challenge', () => {
  it('[P11] is only for the request with the same headers', () => {
    const [mine, other] = [{ authorization: 'Bearer a' }, { authorization: 'Bearer a' }];
    const challenge = { status: 401, wwwAuthenticate: header } as const;
    noteChallenge(mine, challenge);
    expect(challengeTo(mine)).toBe(challenge);
    expect(challengeTo(other)).toBeUndefined();
    expect(challengeTo(undefined)).toBeUndefined();
  });

  it('[P11] of a request without headers is for nobody, because all such requests share one object', () => {
    noteChallenge(noHeaders, { status: 401, wwwAuthenticate: header });
    expect(challengeTo(noHeaders)).toBeUndefined();
  });

  it('decides the reason for its client, and changes no other reason', () => {
    const [unauthorized, forbidden] = [{ authorization: 'a' }, { authorization: 'b' }];
    noteChallenge(unauthorized, { status: 401, wwwAuthenticate: header });
    noteChallenge(forbidden, { status: 403, wwwAuthenticate: header });
    expect(reasonWithChallenge('server_unauthorized', unauthorized)).toBe('upstream_unauthorized');
    expect(reasonWithChallenge('server_unauthorized', forbidden)).toBe('upstream_forbidden');
    expect(reasonWithChallenge('server_unauthorized', { authorization: 'c' })).toBe('server_unauthorized');
    expect(reasonWithChallenge('server_unreachable', unauthorized)).toBe('server_unreachable');
    expect(
      ['upstream_unauthorized', 'upstream_forbidden', 'server_unauthorized'].map((reason) =>
        isUpstreamRefusal(reason as 'server_unauthorized'),
      ),
    ).toEqual([true, true, false]);
  });
});
