import { ServerResponse } from 'node:http';
import { describe, expect, it, vi } from 'vitest';
import { releaseWithResponse, reservedBytes } from '../../../../src/core/http/pipeline/request-permits.ts';
import { type RequestPermit, uncountedRequestPermit } from '../../../../src/core/quota/request-permit.ts';
import { createHttpContext } from '../../../support/http-context.ts';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

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
    const permit: RequestPermit = { ...uncountedRequestPermit, release };
    return { permit, released: () => release.mock.calls.length };
  }

  it('with the end of its response', async () => {
    const { permit, released } = createPermit();
    const { outgoing } = createHttpContext().context;
    releaseWithResponse(outgoing, permit);
    await turn();
    expect(released()).toBe(0);
    outgoing.end();
    await turn();
    outgoing.emit('close');
    expect(released()).toBe(1);
  });

  it('with the end of the connection, also for a response that waits behind others', async () => {
    const { incoming, outgoing } = createHttpContext().context;
    const [first, behind, over] = [createPermit(), createPermit(), createPermit()];
    const ended = new ServerResponse(incoming);
    releaseWithResponse(outgoing, first.permit);
    releaseWithResponse(new ServerResponse(incoming), behind.permit);
    releaseWithResponse(ended, over.permit);
    ended.emit('close');
    incoming.socket.destroy();
    await turn();
    expect([first.released(), behind.released(), over.released()]).toEqual([1, 1, 1]);
    expect(incoming.socket.listenerCount('close')).toBeLessThan(3);
  });

  it('never if nothing is counted, so that no listener is added', () => {
    const { incoming, outgoing } = createHttpContext().context;
    const before = [outgoing.listenerCount('close'), incoming.socket.listenerCount('close')];
    releaseWithResponse(outgoing, uncountedRequestPermit);
    expect([outgoing.listenerCount('close'), incoming.socket.listenerCount('close')]).toEqual(before);
  });
});
