import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EventReader } from '../../../../src/features/remote/http-client/event-reader.ts';
import { costOf } from '../../../support/cpu-time.ts';

function read(chunks: readonly Buffer[], maxEventBytes = 1_000_000) {
  const reader = new EventReader({ maxEventBytes });
  const events = chunks
    .flatMap((chunk) => reader.push(Buffer.from(chunk)))
    .map((event) => ({ ...event, data: event.data.toString() }));
  return { events, overflow: reader.overflow, retryMs: reader.retryMs };
}

const bytesOf = (text: string): Buffer[] => Array.from(Buffer.from(text), (byte) => Buffer.of(byte));

describe('events', () => {
  const text =
    '\uFEFFevent: endpoint\ndata: /m\n\n: c\n\ndata:{"s":"ä🌍"}\ndata:  2\nid: x\n\nretry: 1\n\ndata: end\n\n';
  const events = [
    { type: 'endpoint', data: '/m' },
    { type: 'message', data: '{"s":"ä🌍"}\n 2', id: 'x' },
    { type: 'message', data: 'end' },
  ];

  it.each(['\n', '\r\n', '\r'])('[R8.02] do not depend on line ends (%j) and cuts', (lineEnd) => {
    const bytes = Buffer.from(text.replaceAll('\n', lineEnd));
    fc.assert(
      fc.property(fc.array(fc.nat(bytes.length), { maxLength: 8 }), (cuts) => {
        const places = [0, ...cuts.sort((a, b) => a - b), bytes.length];
        const chunks = places.slice(1).map((place, index) => bytes.subarray(places[index], place));
        expect(read(chunks)).toEqual({ events, overflow: undefined, retryMs: 1 });
      }),
    );
    expect(read(bytesOf(bytes.toString()))).toEqual({ events, overflow: undefined, retryMs: 1 });
  });

  it('[R8.02] ended by CR alone do not wait for what comes next', () => {
    expect(read([Buffer.from('data: 1\r\r')]).events).toEqual([{ type: 'message', data: '1' }]);
  });

  it('keep a NUL and mixed line ends apart', () => {
    const { events: found } = read([Buffer.from('data: a\0b\r\ndata: c\r\n\ndata: \uFEFFd\n\r')]);
    expect(found.map(({ data }) => data)).toEqual(['a\0b\nc', '\uFEFFd']);
  });

  it('with an id alone move the place in the stream, wherever the bytes are cut', () => {
    const ids =
      'id: 1\n\nid: 2\nretry: 5\n\ndata: a\nid: 3\n\n: c\n\nid\n\nidle: 4\n\nid: 5\ndatabase: x\n\ndata: b\n\n';
    const expected = ['1 ', '2 ', '3 a', ' ', '5 ', 'undefined b'];
    for (const chunks of [[Buffer.from(ids)], bytesOf(ids)])
      expect(read(chunks).events.map(({ id, data }) => `${id} ${data}`)).toEqual(expected);
  });

  it('have U+FFFD for what is not UTF-8', () => {
    expect(read([Buffer.from([0x64, 0x61, 0x74, 0x61, 0x3a, 0xff, 0x0a, 0x0a])]).events[0]?.data).toBe('\uFFFD');
  });
});

describe('an event that is too large', () => {
  const many = (text: string, times: number) => Array.from({ length: times }, () => Buffer.from(text));

  it.each([
    ['in one line', [Buffer.from(`data: ${'x'.repeat(2000)}\n\n`)]],
    ['in bytes of two for a character', [Buffer.from(`data: ${'ä'.repeat(600)}\n\n`)]],
    ['without an end', many('x'.repeat(500), 20)],
    ['byte by byte', bytesOf(`data: ${'x'.repeat(6000)}`)],
    ['in many lines', many(`data: ${'x'.repeat(90)}\n`, 20)],
    ['in its type', [Buffer.from(`event: ${'x'.repeat(5000)}`)]],
  ])('[F28] %s is not held', (_, chunks) => {
    const { events, overflow } = read([Buffer.from('data: 1\n\n'), ...chunks, Buffer.from('\n\ndata: 2\n\n')], 1000);
    expect(overflow).toBe('The server wrote an event of more than 1000 bytes.');
    expect(events).toEqual([{ type: 'message', data: '1' }]);
  });

  it('[G-20] [F28] [P8] of many lines holds their bytes, and no object for each', () => {
    const lines = Buffer.from('data:\n'.repeat(100_000));
    expect(read(Array(11).fill(lines), 1_000_000).overflow).toContain('1000000 bytes');
    expect(read([...Array(9).fill(lines), Buffer.from('\n')], 1_000_000).events[0]?.data).toHaveLength(899_999);
  });

  it('[G-20] [F28] costs linear time, whatever it is made of', () => {
    const maxCost = 300; // linear work costs at most 50
    for (const piece of ['data: x\r', 'x', 'data:\n', '\r']) {
      const chunks = Array(50).fill(Buffer.from(piece.repeat(65_536 / piece.length)));
      expect(costOf(() => void read(chunks, 32_000_000), maxCost)).toBeLessThan(maxCost);
    }
  });
});
