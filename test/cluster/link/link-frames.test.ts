import { describe, expect, it } from 'vitest';
import { encodeFrame, type LinkFrame, LinkFrameReader, maxFrameBytes } from '../../../src/cluster/link/link-frames.ts';

const frames: readonly LinkFrame[] = [
  { kind: 'start', number: 1 },
  { kind: 'messages', first: 2 ** 40, contents: [Buffer.from('a'), Buffer.alloc(0), Buffer.from('ccc')] },
  { kind: 'ack', number: 2 ** 40 + 2 },
  { kind: 'refusal', number: 7 },
  { kind: 'heartbeat', number: 0 },
  { kind: 'messages', first: 1, contents: [] },
];

describe('the frames of a direct link', () => {
  it.each([1, 2, 3, 7, 1_000])('are the same after they arrived in pieces of %i bytes', (size) => {
    const bytes = Buffer.concat(frames.map(encodeFrame));
    const reader = new LinkFrameReader();
    const read: LinkFrame[] = [];
    for (let at = 0; at < bytes.length; at += size) read.push(...reader.read(bytes.subarray(at, at + size)));
    expect(read).toEqual(frames);
    expect(reader.bytes).toBe(bytes.length);
  });

  it.each([
    ['a length above the limit', Buffer.from([0xff, 0xff, 0xff, 0xff])],
    ['a length just above the limit', lengthOf(maxFrameBytes + 1)],
    ['a length below a head', lengthOf(3)],
    ['an unknown kind', Buffer.concat([lengthOf(7), Buffer.from([9, 0, 0, 0, 0, 0, 1])])],
    [
      'a message that is longer than its frame',
      Buffer.concat([lengthOf(11), Buffer.from([1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 9])]),
    ],
    ['a message whose length is cut off', Buffer.concat([lengthOf(9), Buffer.from([1, 0, 0, 0, 0, 0, 1, 0, 0])])],
  ])('[P8] are refused with %s, before anything is kept for it', (_, bytes) => {
    expect(() => [...new LinkFrameReader().read(bytes)]).toThrow(Error);
  });
});

function lengthOf(length: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(length);
  return bytes;
}
