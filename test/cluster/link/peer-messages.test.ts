import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodePeerMessage, encodePeerMessage, type PeerMessageHead } from '../../../src/cluster/link/peer-messages.ts';

const accepts = { json: true, sse: true };

const heads: readonly PeerMessageHead[] = [
  { kind: 'post', n: 1, key: 'k', isBatch: true, request: { accepts }, again: true, lengths: [3, 0] },
  { kind: 'listen', n: 2, key: 'k', request: { accepts }, after: '1.5-7', continues: true },
  { kind: 'listen', n: 2, key: 'k', request: { accepts }, continues: false },
  { kind: 'remove', n: 3, key: 'k', request: { accepts } },
  { kind: 'gone', n: 4 },
  { kind: 'read', n: 4, bytes: 65_536 },
  { kind: 'moved', n: 5 },
  { kind: 'json', n: 6, headers: { 'x-y': 'ü' } },
  { kind: 'accepted', n: 7 },
  { kind: 'nothing', n: 7 },
  { kind: 'removed', n: 7 },
  { kind: 'fault', n: 8, reason: 'duplicate_id', id: 'ü"\n', data: { supported: ['x'] } },
  { kind: 'fault', n: 8, reason: 'internal', id: null },
  { kind: 'head', n: 9, headers: {} },
  { kind: 'chunk', n: 9, at: '0.5-1' },
  { kind: 'finish', n: 9 },
  { kind: 'cut', n: 9 },
  { kind: 'hello' },
  { kind: 'hole' },
];

describe('an encoded peer message', () => {
  it.each(heads.map((head) => [head.kind, head] as const))('of the kind %s is decoded as it was encoded', (_, head) => {
    expect(decodePeerMessage(encodePeerMessage(head))).toEqual({ head, body: Buffer.alloc(0), isKnown: true });
  });

  it('[P1] carries any bytes unchanged', () => {
    const bytes = fc.uint8Array({ maxLength: 100 }).map((array) => Buffer.from(array));
    fc.assert(
      fc.property(fc.constantFrom(...heads), fc.array(bytes, { maxLength: 4 }), (head, parts) => {
        const { head: read, body } = decodePeerMessage(encodePeerMessage(head, ...parts));
        expect(read).toEqual(head);
        expect(body.equals(Buffer.concat(parts))).toBe(true);
      }),
    );
  });

  it('[C-10] without a version is of an unknown one', () => {
    const head = Buffer.from('{"kind":"json","n":6}');
    const content = Buffer.concat([Buffer.from([0, 0, 0, head.length]), head, Buffer.from('body')]);
    const { isKnown, head: read, body } = decodePeerMessage(content);
    expect([isKnown, read, body.toString()]).toEqual([false, { kind: 'json', n: 6 }, 'body']);
  });

  it('[C-10] has its version, and one of an unknown version still shows its receiver', () => {
    expect(encodePeerMessage({ kind: 'hello' }).toString()).toContain('"v":2');
    const head = Buffer.from('{"v":3,"kind":"post","n":6,"key":"k","other":{}}');
    const { isKnown, head: read } = decodePeerMessage(Buffer.concat([Buffer.from([0, 0, 0, head.length]), head]));
    expect([isKnown, read]).toMatchObject([false, { kind: 'post', n: 6, key: 'k' }]);
  });

  it('holds copies, so that the memory of its parts can be reused at once', () => {
    const part = Buffer.from('before');
    const content = encodePeerMessage({ kind: 'json', n: 1 }, part);
    part.fill('x');
    expect(decodePeerMessage(content).body.toString()).toBe('before');
  });
});
