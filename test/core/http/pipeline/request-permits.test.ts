import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { describe, expect, it, vi } from 'vitest';
import { createHttpServer } from '../../../../src/core/http/http-server.ts';
import { reservedBytes } from '../../../../src/core/http/pipeline/admission.ts';
import { RequestPermit } from '../../../../src/core/quota/request-permit.ts';
import { createHttpContext } from '../../../support/http-context.ts';
import { turn } from '../../../support/wait-for.ts';

const serverOptions = {
  certificate: undefined,
  bodyTimeoutMs: 10_000,
  connectionIdleMs: 10_000,
  maxConnections: 10,
  slowReaderMs: 10_000,
};

describe('[P8] a request reserves', () => {
  it.each([
    ['nothing without a body', {}, 0],
    ['the length of its body', { 'content-length': '7' }, 7],
    ['at most the limit', { 'content-length': '5000' }, 1_000],
    ['the limit for a body of unknown length', { 'transfer-encoding': 'chunked' }, 1_000],
    ['the limit if it names both', { 'transfer-encoding': 'chunked', 'content-length': '7' }, 1_000],
  ])('%s', (_, headers, bytes) => {
    expect(reservedBytes(headers, 1_000)).toBe(bytes);
  });
});

describe('a permit is released', () => {
  function createPermit() {
    const release = vi.fn();
    const permit = Object.assign(new RequestPermit([], 0, 0), { release });
    return { permit, released: () => release.mock.calls.length };
  }

  it('with the end of its response', async () => {
    const { permit, released } = createPermit();
    const { context } = createHttpContext();
    context.hold(permit);
    const { outgoing } = context;
    await turn();
    expect(released()).toBe(0);
    outgoing.end();
    await turn();
    outgoing.emit('close');
    expect(released()).toBe(1);
  });

  it('with the end of the connection, also for responses that wait behind others', async () => {
    const permits = [createPermit(), createPermit(), createPermit()];
    const waiting = [...permits];
    const { server, close } = createHttpServer(serverOptions, (context) => {
      const next = waiting.shift();
      if (next !== undefined) context.hold(next.permit);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
    client.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(3));
    await vi.waitFor(() => expect(waiting).toHaveLength(0));
    expect(permits.map(({ released }) => released())).toEqual([0, 0, 0]);
    client.destroy();
    await vi.waitFor(() => expect(permits.map(({ released }) => released())).toEqual([1, 1, 1]));
    await close(0);
  });
});
