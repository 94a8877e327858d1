import { expect, it } from 'vitest';
import { modernForm } from '../../../../src/features/eras/modern-on-legacy/client-form.ts';
import { readMessage } from '../../../support/fake-backend.ts';

/** What the client is told whose resource the server does not know. */
function told(uri: string): { text: string; data: unknown } {
  const request = readMessage(`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":${uri}}}`);
  const response = readMessage({ jsonrpc: '2.0', id: 1, error: { code: -32002, message: 'not found' } });
  const of = { request, clientId: 1, idText: '1', serverInfoText: undefined, isRetry: false, capabilitiesText: '{}' };
  const text = modernForm.answered(response, of).response.text.toString();
  return { text, data: JSON.parse(text).error.data };
}

it.each([
  ['an object', '{"a":\n1}'],
  ['an array', '[\r\n]'],
  ['a number', '1'],
])(
  '[S-17] a requested uri that is %s is not echoed to a modern client, and no line break reaches an event',
  (_, uri) => {
    const { text, data } = told(uri);
    expect(text).not.toMatch(/[\r\n]/);
    expect(data).toBeUndefined();
  },
);

it('[S-17] a requested uri that is a string is echoed to a modern client as it was written', () => {
  expect(told('"a:\\u0062"').text).toContain('"a:\\u0062"');
});
