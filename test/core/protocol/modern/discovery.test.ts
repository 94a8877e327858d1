import { describe, expect, it } from 'vitest';
import { namesModernRevision, newestModern } from '../../../../src/core/protocol/known-revisions.ts';
import { readDiscovery, withServedVersions } from '../../../../src/core/protocol/modern/discovery.ts';
import { statusOf } from '../../../../src/core/protocol/modern/error-status.ts';
import { read } from './read.ts';

const result = (value: unknown) => read({ jsonrpc: '2.0', id: 1, result: value });
const error = (code: unknown, data?: unknown) => read({ jsonrpc: '2.0', id: 1, error: { code, message: 'x', data } });

describe('the answer to server/discover', () => {
  it.each([
    [
      'its versions',
      result({ supportedVersions: ['2026-07-28', '2025-11-25'], capabilities: { tools: {} } }),
      ['2026-07-28'],
      new Set(['tools']),
    ],
    ['only versions that are not known here', result({ supportedVersions: ['2027-01-01'] }), [], new Set()],
    ['the error that names them', error(-32022, { supported: ['2026-07-28'] }), ['2026-07-28'], undefined],
  ])('[R6.05] is a modern server’s with %s', (_, response, revisions, capabilities) => {
    expect(readDiscovery(response)).toMatchObject({ era: 'modern', revisions, capabilities });
  });

  it.each([
    ['no such method', error(-32601)],
    ['not initialized', error(-32000)],
    ['the code without versions', error(-32022)],
    ['the code with legacy versions only', error(-32022, { supported: ['2025-11-25'] })],
    ['a success with legacy versions only', result({ supportedVersions: ['2025-11-25', '2025-06-18'] })],
    ['a success with no version', result({ supportedVersions: [] })],
    ['versions that are no list', error(-32022, { supported: '2026-07-28' })],
    ['another result', result({ tools: [] })],
    ['an error that is no object', read('{"jsonrpc":"2.0","id":1,"error":7}')],
  ])('[R6.05] is a legacy server’s with %s', (_, response) => {
    expect(readDiscovery(response)).toEqual({ era: 'legacy' });
  });

  it('[R2.23] names no version that is not served here, and is the same text otherwise', () => {
    const served = (text: string) => withServedVersions(read(text)).text.toString();
    const fine = '{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":[ "2026-07-28", "2025-11-25" ],"x":1e400}}';
    expect(served(fine)).toBe(fine);
    expect(
      served('{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2027-01-01","2026-07-28"],"x":1e400}}'),
    ).toBe('{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"],"x":1e400}}');
    for (const outcome of ['"error":{}', '"result":{"supportedVersions":1}']) {
      const text = `{"jsonrpc":"2.0","id":1,${outcome}}`;
      expect(served(text)).toBe(text);
    }
  });
});

describe('the status of a response', () => {
  it.each([
    ['[R2.21] no such method', error(-32601), 404],
    ['[R2.24] a missing capability', error(-32021, { requiredCapabilities: { sampling: {} } }), 400],
    ['[R2.20] a version that is not served', error(-32022), 400],
    ['[R2.25] wrong params', error(-32602), 200],
    ['[R2.25] an internal error', error(-32603), 200],
    ['[R2.25] a code of its own', error(4711), 200],
    ['an error that is no object', read('{"jsonrpc":"2.0","id":1,"error":7}'), 200],
    ['a result', result({ error: { code: -32601 } }), 200],
  ])('%s: %s', (_, response, status) => {
    expect(statusOf(response, 'no/such', () => true, newestModern)).toBe(status);
  });

  it.each([
    ['tools/call', 'tools'],
    ['prompts/get', 'prompts'],
    ['resources/read', 'resources'],
  ])('[M-03] of %s is 404 for -32601 only where the server lacks %s: else a thing is missing', (method, capability) => {
    expect(statusOf(error(-32601), method, (asked) => asked === capability, newestModern)).toBe(200);
    expect(statusOf(error(-32601), method, (asked) => asked !== capability, newestModern)).toBe(404);
  });
});

describe('a header that names a revision', () => {
  it.each([
    ['2026-07-28', true],
    ['2027-01-01', true],
    ['2025-11-25', false],
    ['v999.0.0', false],
    ['9999-99-999', false],
    ['', false],
    [undefined, false],
  ])('%s is modern: %s', (version, isModern) => {
    expect(namesModernRevision(version)).toBe(isModern);
  });
});
