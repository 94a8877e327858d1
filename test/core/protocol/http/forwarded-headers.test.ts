import { describe, expect, it } from 'vitest';
import {
  maxForwardedBytes,
  noHeaders,
  readForwardedCredentials,
  readForwardedHeaders,
  subjectHeader,
  subjectTokenHeader,
} from '../../../../src/core/protocol/http/forwarded-headers.ts';

describe('readForwardedHeaders', () => {
  it('takes the listed ones and nothing else', () => {
    const headers = { authorization: 'Bearer a', 'x-team': 'b', cookie: 'c', accept: '*/*' };
    expect(readForwardedHeaders(headers, ['x-team', 'authorization', 'x-none'])).toEqual({
      'x-team': 'b',
      authorization: 'Bearer a',
    });
    expect(readForwardedHeaders(headers, [])).toBe(noHeaders);
  });

  it('[S16] leaves out what is for this hop alone', () => {
    const headers = { 'x-a': '1', 'x-b': '2', connection: 'close, X-A,x-c' };
    expect(readForwardedHeaders(headers, ['x-a', 'x-b'])).toEqual({ 'x-b': '2' });
  });

  it('takes an empty one for none', () => {
    expect(readForwardedHeaders({ authorization: '' }, ['authorization'])).toEqual({});
  });

  it('knows what every object has for no header', () => {
    expect(readForwardedHeaders({}, ['constructor', '__proto__', 'toString'])).toEqual({});
  });

  it('refuses more than the limit, in all', () => {
    const fits = 'x'.repeat(maxForwardedBytes / 2 - 1);
    expect(readForwardedHeaders({ a: fits, b: fits }, ['a', 'b'])).toEqual({ a: fits, b: fits });
    expect(readForwardedHeaders({ a: fits, b: `${fits}x` }, ['a', 'b'])).toBe('too_large');
  });
});

describe('readForwardedCredentials', () => {
  const digest = readForwardedCredentials({ authorization: 'Bearer a', 'x-team': 'b' });

  it('[P11] depends on the headers and not on their order, and shows none of them', () => {
    expect(readForwardedCredentials({ 'x-team': 'b', authorization: 'Bearer a' })).toBe(digest);
    expect(digest).toMatch(/^[\w-]{43}$/);
    expect(readForwardedCredentials({ authorization: 'Bearer a' })).not.toBe(digest);
    expect(readForwardedCredentials({ authorization: 'Bearer b', 'x-team': 'a' })).not.toBe(digest);
    expect(readForwardedCredentials({ authorization: 'Bearer a', 'x-team': 'b', [subjectHeader]: 'c' })).not.toBe(
      digest,
    );
  });

  it('leaves out traces and the token of the user, which change with each request or every few minutes', () => {
    const changing = { traceparent: '1', tracestate: '2', baggage: '3', [subjectTokenHeader]: '4' };
    expect(readForwardedCredentials({ authorization: 'Bearer a', 'x-team': 'b', ...changing })).toBe(digest);
    expect(readForwardedCredentials(changing)).toBe('');
    expect(readForwardedCredentials(noHeaders)).toBe('');
  });
});
