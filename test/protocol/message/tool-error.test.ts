import { expect, it } from 'vitest';
import { isToolError } from '../../../src/protocol/message/tool-error.ts';

const error = { content: [{ type: 'text', text: 'no' }], isError: true };

it.each<[string, string, boolean]>([
  ['a failed tool', JSON.stringify({ jsonrpc: '2.0', id: 1, result: error }), true],
  ['one with white space', '{"id":1,"result" : {"isError"\t :  true , "content":[]}}', true],
  ['a tool that says that it did not fail', '{"id":1,"result":{"isError":false,"content":[]}}', false],
  ['a result without the member', '{"id":1,"result":{"content":[]}}', false],
  ['an error', '{"id":1,"error":{"code":1,"message":"x","data":{"isError":true}}}', false],
  ['one that shows another result in its own', JSON.stringify({ id: 1, result: { structuredContent: error } }), false],
  ['one behind such a one', `{"id":1,"result":{"structuredContent":{"isError":false},"isError":true}}`, true],
  ['text that speaks of it', JSON.stringify({ id: 1, result: { content: JSON.stringify(error) } }), false],
  ['something else than true', '{"id":1,"result":{"isError":"true"}}', false],
  ['text that is cut', '{"id":1,"result":{"isError"', false],
])('%s is told from others', (_, text, expected) => {
  expect(isToolError(Buffer.from(text))).toBe(expected);
});
