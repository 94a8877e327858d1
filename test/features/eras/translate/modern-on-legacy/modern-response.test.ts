import { describe, expect, it } from 'vitest';
import {
  asModernResponse,
  type TranslatedRequest,
} from '../../../../../src/features/eras/translate/modern-on-legacy/modern-response.ts';
import { read } from '../../../../core/protocol/modern/read.ts';
import { fieldsInText, routingFields } from '../../../../support/routing-fields.ts';

function translated(text: string, request: Partial<TranslatedRequest> & { method: string }): string {
  const response = asModernResponse(read(text), { clientId: 'ü', idText: '"ü"', ...request });
  expect(routingFields(response)).toEqual(fieldsInText(response));
  return response.text.toString();
}
const response = (members: string, id = '"ü"'): string => `{"jsonrpc":"2.0","id":${id},${members}}`;
const hints = '"ttlMs":0,"cacheScope":"private"';
const infoKey = 'io.modelcontextprotocol/serverInfo';

describe('a response of a legacy server for a modern client', () => {
  it.each([
    [
      'tools/call',
      '{"content":[], "big":12345678901234567890}',
      '{"resultType":"complete","content":[], "big":12345678901234567890}',
    ],
    ['tools/call', '{}', '{"resultType":"complete","content":[]}'],
    [
      'tools/call',
      '{"structuredContent":{"a":1}}',
      '{"resultType":"complete","content":[],"structuredContent":{"a":1}}',
    ],
    [
      'tools/call',
      '{"toolResult":"a\\n\u00e4"}',
      '{"resultType":"complete","content":[{"type":"text","text":"a\\n\u00e4"}],"toolResult":"a\\n\u00e4"}',
    ],
    [
      'tools/call',
      '{"toolResult":{"a":"b"}}',
      '{"resultType":"complete","content":[{"type":"text","text":"{\\"a\\":\\"b\\"}"}],"toolResult":{"a":"b"}}',
    ],
    ['tools/call', '{"content":[],"toolResult":1}', '{"resultType":"complete","content":[],"toolResult":1}'],
    ['prompts/get', '{"toolResult":1}', '{"resultType":"complete","toolResult":1}'],
    ['tools/call', ' { "a" : 1 } ', ' {"resultType":"complete","content":[], "a" : 1 } '],
    ['completion/complete', '{"ttlMs":7}', '{"resultType":"complete","ttlMs":7}'],
    ['tools/list', '{"tools":[]}', `{"resultType":"complete",${hints},"tools":[]}`],
    [
      'prompts/list',
      '{"prompts":[],"nextCursor":"x"}',
      `{"resultType":"complete",${hints},"prompts":[],"nextCursor":"x"}`,
    ],
    ['resources/list', '{"_meta":{"a/b":1}}', `{"resultType":"complete",${hints},"_meta":{"a/b":1}}`],
    ['resources/templates/list', '{}', `{"resultType":"complete",${hints}}`],
    ['resources/read', '{"contents":[]}', `{"resultType":"complete",${hints},"contents":[]}`],
  ])(
    '[P1] [R3.01] [R3.02] [R3.03] %s: %s has a type, and how long it may be kept, and else the same text',
    (method, before, after) => {
      expect(translated(response(`"result":${before}`, '42'), { method })).toBe(response(`"result":${after}`));
    },
  );

  it('[R3.01] [R3.02] has our type and hints in place of what a server without a word for them says', () => {
    const before = '{"cacheScope":"public","x":1,"resultType":"input_required","ttlMs":-1.5}';
    expect(translated(response(`"result":${before}`), { method: 'tools/list' })).toBe(
      response('"result":{"cacheScope":"private","x":1,"resultType":"complete","ttlMs":0}'),
    );
  });

  it.each([
    ['resources/read', '"contents":[]'],
    ['prompts/get', '"messages":[]'],
  ])('[M-01] [R3.04] to a retry of %s says that nobody may keep it', (method, member) => {
    expect(translated(response(`"result":{${member}}`), { method, isRetry: true })).toBe(
      response(`"result":{"resultType":"complete",${hints},${member}}`),
    );
  });

  it.each([
    ['{"n":1}', `{"resultType":"complete","_meta":{"${infoKey}":{"name":"s"}},"n":1}`],
    ['{"n":1,"_meta":{}}', `{"resultType":"complete","n":1,"_meta":{"${infoKey}":{"name":"s"}}}`],
    ['{"_meta":{"a/b":1.0}}', `{"resultType":"complete","_meta":{"${infoKey}":{"name":"s"},"a/b":1.0}}`],
    [`{"_meta":{"${infoKey}":7}}`, `{"resultType":"complete","_meta":{"${infoKey}":7}}`],
    ['{"_meta":null}', '{"resultType":"complete","_meta":null}'],
  ])('[P1] [R3.08] %s says who the server is, beside what is there', (before, after) => {
    const serverInfoText = '{"name":"s"}';
    expect(translated(response(`"result":${before}`), { method: 'prompts/get', serverInfoText })).toBe(
      response(`"result":${after}`),
    );
  });

  it('[P1] that cannot be read as one object keeps its text under the id of its client', () => {
    for (const result of ['7', '[]', '{"a":1,"a":2}']) {
      expect(translated(response(`"result":${result}`, '42'), { method: 'tools/list', serverInfoText: '{}' })).toBe(
        response(`"result":${result}`),
      );
    }
  });

  it('lists tools without what says whether they can be tasks', () => {
    const tools = (first: string, last: string) =>
      response(
        `"result":{"resultType":"complete",${hints},"tools":[{"name":"a","execution":{${first}}},7,{"execution":{"x":1${last}}}]}`,
      );
    expect(translated(tools('"taskSupport":"required"', ',"taskSupport":"optional"'), { method: 'tools/list' })).toBe(
      tools('', ''),
    );
  });

  it.each([
    [-32002, -32602],
    [-32042, -32603],
    [-32020, -32603],
    [-32021, -32603],
    [-32099, -32603],
    [-32602, -32602],
    [-32000, -32000],
    [-32019, -32019],
    [-32100, -32100],
    [-32601, -32601],
    [7, 7],
  ])('[P1] the code %d is %d', (code, expected) => {
    const error = (of: number) => response(`"error":{"message":"ü","code":${of},"data":{"uri":"x"}}`);
    expect(translated(error(code), { method: 'tools/call', uriText: undefined, serverInfoText: '{}' })).toBe(
      error(expected),
    );
  });

  it.each([
    ['{"code":-32002}', '{"data":{"uri":"a:b"},"code":-32602}'],
    ['{"code":-32002,"data":{}}', '{"code":-32602,"data":{"uri":"a:b"}}'],
    ['{"data":{"n":1},"code":-32002}', '{"data":{"uri":"a:b","n":1},"code":-32602}'],
    ['{"data":{"uri":"other"},"code":-32002}', '{"data":{"uri":"other"},"code":-32602}'],
    ['{"data":"text","code":-32002}', '{"data":"text","code":-32602}'],
  ])('[R3.06] %s says which resource is missing: %s', (before, after) => {
    expect(translated(response(`"error":${before}`), { method: 'resources/read', uriText: '"a:b"' })).toBe(
      response(`"error":${after}`),
    );
  });
});
