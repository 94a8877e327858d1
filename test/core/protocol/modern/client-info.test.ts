import { describe, expect, it } from 'vitest';
import { clientInfoKey, readClientInfo, readClientName } from '../../../../src/core/protocol/modern/envelope.ts';
import { readMessage } from '../../../support/fake-backend.ts';

const requestWith = (info: unknown) =>
  readMessage({ jsonrpc: '2.0', id: 1, method: 'x', params: { _meta: { [clientInfoKey]: info } } });

const infoOf = (info: unknown): string | undefined => readClientInfo(requestWith(info));

const nameOf = (info: unknown): string | undefined => readClientName(requestWith(info));

it('the name of a client has its version, if it gives one, and is read again when the client changes', () => {
  for (const version of ['1', '1', '2']) expect(nameOf({ name: 'editor', version })).toBe(`editor ${version}`);
  expect(nameOf({ name: 'editor' })).toBe('editor');
  expect(nameOf({ name: 'x'.repeat(200), version: '1' })).toBe('x'.repeat(100));
});

it.each([undefined, null, 'editor', { name: 1 }, { name: 'x'.repeat(4_096) }])('[P8] %j names no client', (info) =>
  expect(nameOf(info)).toBeUndefined(),
);

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
