import { describe, expect, it } from 'vitest';
import { clientInfoKey, readClientInfo } from '../../../../src/core/protocol/modern/envelope.ts';
import { readMessage } from '../../../support/fake-backend.ts';

const infoOf = (info: unknown): string | undefined =>
  readClientInfo(readMessage({ jsonrpc: '2.0', id: 1, method: 'x', params: { _meta: { [clientInfoKey]: info } } }));

describe('what a client calls itself', () => {
  it('[M-04] is passed on as it was written, with all that it says', () => {
    const info = { name: 'editor', version: '1', title: 'An editor' };
    expect(infoOf(info)).toBe(JSON.stringify(info));
  });

  it.each([
    ['nothing', undefined],
    ['null', null],
    ['a text', 'editor'],
    ['a list', ['editor']],
    ['no version', { name: 'editor' }],
    ['a name that is none', { name: 1, version: '1' }],
    ['more than 4 KiB', { name: 'x'.repeat(4_096), version: '1' }],
  ])('[M-04] [P8] is not taken from %s', (_, info) => expect(infoOf(info)).toBeUndefined());
});
