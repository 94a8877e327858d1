import { afterEach, expect, it } from 'vitest';
import { chooseKernel, setKernel } from '../../../src/protocol/json/kernel/choose-kernel.ts';
import { ValueKernel } from '../../../src/protocol/json/kernel/value-kernel.ts';
import { maxServerDepth, readOne } from '../../../src/protocol/message/message.ts';
import { isToolError } from '../../../src/protocol/message/tool-error.ts';

const error = { content: [{ type: 'text', text: 'no' }], isError: true };

afterEach(() => chooseKernel('auto'));

const texts: readonly [string, string, boolean][] = [
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
];

it.each(texts)('%s is told from others', (_, text, expected) => {
  expect(isToolError({ text: Buffer.from(text), reportsToolError: undefined })).toBe(expected);
});

const messages = texts
  .filter(([name]) => name !== 'text that is cut')
  .map(
    ([name, text, expected]) => [name, text.replace(/^\{("jsonrpc":"2.0",)?/, '{"jsonrpc":"2.0",'), expected] as const,
  );

it.each(messages)('the kernel sees the same while it skips the result: %s', (_, text, expected) => {
  for (const windowBytes of [16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 64, 4_096]) {
    setKernel(new ValueKernel({ minBytes: 1, windowBytes }));
    const message = readOne(Buffer.from(text), maxServerDepth);
    expect(message?.reportsToolError, `${windowBytes}`).toBe(text.includes('"result"') ? expected : undefined);
    if (message !== undefined) expect(isToolError(message)).toBe(expected);
  }
});
