import { Readable } from 'node:stream';
import { describe, expect, it, vi } from 'vitest';
import { readRequestBody } from '../../../../src/core/http/pipeline/receive-post.ts';
import type { Reason } from '../../../../src/core/protocol/faults.ts';
import { turn } from '../../../support/wait-for.ts';

const maxBytes = 10;

/** A request whose body the test pushes. */
function createRequest(contentLength?: number) {
  const headers = contentLength === undefined ? {} : { 'content-length': String(contentLength) };
  return Object.assign(new Readable({ read: () => undefined }), { headers });
}

const textOf = (body: Buffer | Reason | undefined): string | undefined => body?.toString();
/** The result of a body that arrives in these parts. */
async function read(parts: readonly string[], contentLength?: number) {
  const request = createRequest(contentLength);
  const done = vi.fn<(body: Buffer | Reason) => void>();
  readRequestBody(request, maxBytes, done);
  for (const part of parts) request.push(part);
  request.push(null);
  await turn();
  expect(done).toHaveBeenCalledTimes(1);
  return textOf(done.mock.calls[0]?.[0]);
}

describe('a body', () => {
  it.each([
    ['one part', ['{"a":1}'], '{"a":1}'],
    ['several parts', ['{"a"', ':', '1}'], '{"a":1}'],
    ['no part', [], ''],
    ['as many bytes as allowed', ['12345', '67890'], '1234567890'],
    ['one byte too many', ['1234567890', '1'], 'body_too_large'],
    ['one part that is too large', ['1'.repeat(50)], 'body_too_large'],
    ['many parts after too many bytes', ['1'.repeat(50), '2', '3'], 'body_too_large'],
  ])('is read whole and at most to its limit: %s', async (_, parts, result) => {
    expect(await read(parts)).toBe(result);
  });

  it('[P8] is refused by its Content-Length before a byte of it is read', () => {
    const request = createRequest(maxBytes + 1);
    const done = vi.fn();
    readRequestBody(request, maxBytes, done);
    expect(done).toHaveBeenCalledExactlyOnceWith('body_too_large');
    expect(request.listenerCount('data')).toBe(0);
  });

  it('is measured by its bytes, whatever its Content-Length says', async () => {
    expect(await read(['12345678901'], 5)).toBe('body_too_large');
  });

  it('whose client leaves is not handed over', async () => {
    const request = createRequest();
    const done = vi.fn();
    readRequestBody(request, maxBytes, done);
    request.push('{"a"');
    await turn();
    request.destroy();
    await turn();
    expect([done.mock.calls, request.closed]).toEqual([[], true]);
  });
});
