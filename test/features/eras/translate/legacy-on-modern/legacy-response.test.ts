import { describe, expect, it } from 'vitest';
import { asLegacyResponse } from '../../../../../src/features/eras/translate/legacy-on-modern/legacy-response.ts';
import { readMessage } from '../../../../support/fake-backend.ts';

const translated = (text: string, method: string): string =>
  asLegacyResponse(readMessage(text), method).text.toString();

describe('a response of a modern server for a legacy client', () => {
  it.each([
    ['tools/list', '{"tools":[{"name":"x","outputSchema":{"type":"object"}}],"ttlMs":1.0,"cacheScope":"public"}'],
    ['tools/call', '{"content":[],"structuredContent":{"n":1.0},"resultType":"complete","_meta":{"a/b":1}}'],
    ['prompts/list', '{"prompts":[],"structuredContent":[1]}'],
  ])('[P1] %s is the same text', (method, result) => {
    const text = `{"jsonrpc":"2.0","id":1,"result":${result}}`;
    expect(translated(text, method)).toBe(text);
  });

  it('of a tool has no structured content but objects, which is all that the legacy era has', () => {
    for (const value of ['[1,2]', '"x"', '7', 'null']) {
      const text = `{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":${value},"isError":false}}`;
      expect(translated(text, 'tools/call')).toBe('{"jsonrpc":"2.0","id":1,"result":{"content":[],"isError":false}}');
    }
  });

  it('lists tools without output schemas that are not of objects', () => {
    const tools = (first: string) =>
      `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a"${first}},{"name":"b"},{"outputSchema":{"type":"object"}}, 7]}}`;
    expect(translated(tools(',"outputSchema":{"type":"array","items":{}}'), 'tools/list')).toBe(tools(''));
    expect(translated(tools(',"outputSchema":{"anyOf":[]}'), 'tools/list')).toBe(tools(''));
  });

  it.each([
    ['resources/read', -32602, '{"uri":"test://x"}', -32002],
    ['resources/read', -32602, '{"field":"uri"}', -32602],
    ['tools/call', -32602, '{"uri":"test://x"}', -32602],
    ['tools/call', -32020, '{}', -32603],
    ['tools/call', -32021, '{"requiredCapabilities":{"sampling":{}}}', -32600],
    ['tools/call', -32022, '{}', -32603],
    ['tools/call', -32601, '{}', -32601],
    ['tools/call', 1, '{}', 1],
  ])('%s: the code %d with %s is %d', (method, code, data, expected) => {
    const text = (of: number) => `{"jsonrpc":"2.0","id":1,"error":{"message":"ü","code":${of},"data":${data}}}`;
    expect(translated(text(code), method)).toBe(text(expected));
  });
});
