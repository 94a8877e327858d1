import { describe, expect, it } from 'vitest';
import { SteppedScan } from '../../../../src/core/protocol/json.ts';
import { maxServerDepth, readOne } from '../../../../src/core/protocol/message/message.ts';

const error = { content: [{ type: 'text', text: 'no' }], isError: true };

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
];

describe('a failed tool', () => {
  it.each(texts)('is told from others: %s', (_, text, expected) => {
    const message = readOne(Buffer.from(text.replace(/^\{("jsonrpc":"2.0",)?/, '{"jsonrpc":"2.0",')), maxServerDepth);
    expect(message?.reportsToolError).toBe(expected);
  });

  it.each(texts)('is told from others when the text is read in steps: %s', (_, text, expected) => {
    const seen: boolean[] = [];
    const scan = new SteppedScan(
      Buffer.from(text),
      maxServerDepth,
      (one) => seen.push(one.reportsToolError),
      undefined,
      2,
    );
    while (scan.step() === undefined);
    expect(seen).toEqual([expected]);
  });
});
