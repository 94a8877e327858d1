import { describe, expect, it } from 'vitest';
import { readMessages } from '../../../../src/core/protocol/message/read-messages.ts';

const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}';
const initialize = '{"jsonrpc":"2.0","id":2,"method":"initialize","params":{}}';
const modern =
  '{"jsonrpc":"2.0","id":3,"method":"ping","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}';
const bom = '\ufeff';

/** A small text, too, is read in a later turn if this one has had enough work. */
const read = async (text: string, version?: string) => readMessages(Buffer.from(text), 5, version);

describe('a text of a client', () => {
  it.each([
    ['nothing', '', 'not_json', null],
    ['no JSON', '{"jsonrpc"', 'not_json', null],
    ['an object that is no message', '{"id":7}', 'not_json_rpc', 7],
    ['an empty batch', '[]', 'empty_batch', null],
    ['a batch with something else', `[${ping},{"a":1}]`, 'not_json_rpc', null],
    ['a batch with a modern message', `[${ping},${modern}]`, 'modern_batch', null],
    [
      'deep nesting',
      `{"jsonrpc":"2.0","id":1,"method":"x","params":${'['.repeat(9)}${']'.repeat(9)}}`,
      'too_deep',
      null,
    ],
    ['more messages than a batch may have', `[${Array(101).fill(ping).join(',')}]`, 'batch_too_large', null],
  ])('is refused: %s', async (_, text, reason, id) => {
    expect(await read(text)).toEqual({ ok: false, reason, id });
  });

  it('is refused under the id of its message, if that could be read', async () => {
    expect(await read('{"jsonrpc":"1.0","id":7,"method":"ping"}')).toMatchObject({ ok: false, id: 7 });
  });

  it.each([
    ['a request', ping, { isBatch: false, id: 1, initialize: undefined, modern: undefined }],
    ['a notification', '{"jsonrpc":"2.0","method":"x"}', { isBatch: false, id: null }],
    ['a batch', `[${ping}]`, { isBatch: true, id: null }],
    ['initialize', initialize, { isBatch: false, id: 2, initialize: { method: 'initialize' } }],
    ['initialize in a batch', `[${ping},${initialize}]`, { isBatch: true, initialize: { method: 'initialize' } }],
    ['initialize as a notification', '{"jsonrpc":"2.0","method":"initialize"}', { initialize: undefined }],
    ['a modern message', modern, { id: 3, modern: { isModern: true } }],
  ])('is read: %s', async (_, text, result) => {
    expect(await read(text)).toMatchObject({ ok: true, ...result });
  });

  it('is modern if a header says so', async () => {
    expect(await read(ping, '2026-07-28')).toMatchObject({ modern: { id: 1 } });
    expect(await read(ping, '2025-11-25')).toMatchObject({ modern: undefined });
  });

  it.each(['2026-07-28', '2027-01-01', '1999-01-01'])(
    'is never modern if it is initialize, under a header of %s',
    async (version) => {
      expect(await read(initialize, version)).toMatchObject({ modern: undefined, initialize: { id: 2 } });
    },
  );

  it('is modern if it is initialize with the fields of that era, which has removed it', async () => {
    const removed = modern.replace('ping', 'initialize');
    expect(await read(removed)).toMatchObject({ modern: { method: 'initialize' } });
    expect(await read(removed, '2025-11-25')).toMatchObject({ modern: { method: 'initialize' } });
  });

  it('is a modern batch, even of initialize, if a header says so', async () => {
    expect(await read(`[${initialize}]`, '2026-07-28')).toMatchObject({ ok: false, reason: 'modern_batch' });
  });

  it('has no byte order mark left in front, which is no JSON', async () => {
    expect(await read(`${bom}${ping}`)).toMatchObject({ ok: false });
  });

  it('[P8] is read later if it is large', async () => {
    const text = `{"jsonrpc":"2.0","id":9,"method":"x","params":{"a":"${'a'.repeat(2 ** 20)}"}}`;
    const large = readMessages(Buffer.from(text), 5);
    expect(large).toBeInstanceOf(Promise);
    expect(await large).toMatchObject({ ok: true, id: 9 });
  });
});
