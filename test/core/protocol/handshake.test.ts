import { describe, expect, it } from 'vitest';
import {
  canReplace,
  declaredListChanges,
  type Handshake,
  readHandshake,
  withLegacyRevision,
} from '../../../src/core/protocol/handshake.ts';

const response = (body: object): Buffer => Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 0, ...body }));
const shake = (capabilities: unknown, protocolVersion = '2025-11-25'): Handshake => ({ protocolVersion, capabilities });

describe('an answer to initialize', () => {
  it('says the revision and the capabilities, which may be missing', () => {
    const capabilities = { tools: {} };
    expect(readHandshake(response({ result: { protocolVersion: 'v', capabilities, x: 1 } }))).toEqual(
      shake(capabilities, 'v'),
    );
    expect(readHandshake(response({ result: { protocolVersion: 'v' } }))).toEqual(shake({}, 'v'));
    expect(readHandshake(response({ result: { protocolVersion: 'v', capabilities: null } }))).toEqual(shake({}, 'v'));
  });

  it.each([
    [{ error: { code: 1, message: 'x' } }],
    [{ result: {} }],
    [{ result: null }],
    [{ result: 'text' }],
    [{ result: [] }],
    [{ result: { protocolVersion: 5 } }],
    [{ result: { protocolVersion: 'v'.repeat(65) } }],
  ])('%j is none', (body) => {
    expect(readHandshake(response(body))).toBeUndefined();
  });
});

describe('a revision of the modern era in initialize', () => {
  it.each(['2026-07-28', '2027-01-01'])('is not negotiated: %s', (version) => {
    const answer = response({ result: { protocolVersion: version, capabilities: {} } });
    expect(readHandshake(answer)?.protocolVersion).toBe('2025-11-25');
    expect(JSON.parse(withLegacyRevision(answer).toString()).result).toEqual({
      protocolVersion: '2025-11-25',
      capabilities: {},
    });
    const request = response({ method: 'initialize', params: { a: 1, protocolVersion: version } });
    expect(JSON.parse(withLegacyRevision(request).toString()).params).toEqual({ a: 1, protocolVersion: '2025-11-25' });
  });

  it.each(['2024-11-05', '2025-11-25', 'v'])('leaves %s as it is', (version) => {
    const answer = response({ result: { protocolVersion: version } });
    expect(withLegacyRevision(answer)).toBe(answer);
  });
});

describe('a hostile answer to initialize', () => {
  it('[S-05] [S-09] is none if its capabilities are larger than anybody reads', () => {
    const large = `"${'x'.repeat(64 * 1024)}"`;
    const text = (value: string) =>
      Buffer.from(`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"v","capabilities":{"a":${value}}}}`);
    expect(readHandshake(text(large))).toBeUndefined();
    expect(readHandshake(text('['.repeat(100_000) + ']'.repeat(100_000)))).toBeUndefined();
    expect(readHandshake(text('"x"'))).toEqual(shake({ a: 'x' }, 'v'));
  });
});

describe('a server in place of another', () => {
  it.each([
    ['the same', { a: { b: true, c: [1, 'x'] } }, { a: { b: true, c: [1, 'x'] } }, true],
    ['with more', { a: {} }, { a: { b: true }, c: {} }, true],
    ['with less', { a: {}, b: {} }, { a: {} }, false],
    ['with less inside', { a: { b: true } }, { a: {} }, false],
    ['that says false where it said true', { a: { b: true } }, { a: { b: false } }, false],
    ['that says true where it said false', { a: { b: false } }, { a: { b: true } }, true],
    ['without what was false or null', { a: false, b: null }, {}, true],
    ['with another value', { a: 'x' }, { a: 'y' }, false],
    ['with text for an object', { a: { b: true } }, { a: 'b' }, false],
    ['with a key that every object inherits', { toString: {} }, {}, false],
    ['with __proto__ as a key', JSON.parse('{"__proto__":{"x":true}}'), {}, false],
    ['after one without any', {}, { tools: {} }, true],
    ['after one that said nothing', null, {}, true],
    ['with nothing after something', { a: {} }, null, false],
  ])('%s', (_, earlier, later, expected) => {
    expect(canReplace(shake(later), shake(earlier))).toBe(expected);
  });

  it('of another revision is none', () => {
    expect(canReplace(shake({}, 'a'), shake({}, 'b'))).toBe(false);
  });

  it('[F12] with capabilities nested as deep as a line allows is compared without an end of the stack', () => {
    const nested = (depth: number, core: string): unknown =>
      JSON.parse(`${'['.repeat(depth)}${core}${']'.repeat(depth)}`);
    const depth = 200_000;
    expect(canReplace(shake(nested(depth, '1')), shake(nested(depth, '1')))).toBe(true);
    expect(canReplace(shake(nested(depth, '2')), shake(nested(depth, '1')))).toBe(false);
    expect(canReplace(shake({}), shake(nested(depth, '1')))).toBe(false);
  });
});

describe('lists that can change', () => {
  it.each([
    [{ tools: { listChanged: true }, prompts: { listChanged: true }, resources: { listChanged: true } }, 3],
    [{ tools: { listChanged: true }, prompts: {}, resources: { subscribe: true } }, 1],
    [{ tools: { listChanged: false } }, 0],
    [{ tools: { listChanged: 'true' } }, 0],
    [{ tools: true }, 0],
    [{}, 0],
    ['text', 0],
    [[], 0],
  ])('%j', (capabilities, count) => {
    const methods = declaredListChanges(shake(capabilities));
    expect(methods).toHaveLength(count);
    for (const text of methods)
      expect(JSON.parse(text.toString()).method).toMatch(/^notifications\/(tools|prompts|resources)\/list_changed$/);
  });
});
