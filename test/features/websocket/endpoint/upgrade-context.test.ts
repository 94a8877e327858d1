import { describe, expect, it, vi } from 'vitest';
import { RequestPermit } from '../../../../src/core/quota/request-permit.ts';
import { UpgradeContext } from '../../../../src/features/websocket/endpoint/upgrade-context.ts';
import { createFakeSocket, createHttpContext } from '../../../support/http-context.ts';
import { turn } from '../../../support/wait-for.ts';

/** A handshake on a connection that keeps what is written. */
function createUpgrade() {
  const { incoming } = createHttpContext().context;
  const { socket, written } = createFakeSocket();
  const destroySoon = vi.fn();
  socket.destroySoon = destroySoon;
  return {
    socket,
    destroySoon,
    context: new UpgradeContext(incoming, socket, Buffer.of()),
    text: written,
  };
}

describe('a handshake', () => {
  it('that is refused is answered, and its connection ends', async () => {
    const { context, text, destroySoon } = createUpgrade();
    context.refuse({ reason: 'credentials_required', wwwAuthenticate: 'Bearer' });
    await turn();
    expect(text()).toMatch(/^HTTP\/1.1 401 /);
    expect(text().toLowerCase()).toContain('www-authenticate: bearer');
    expect(text().toLowerCase()).toContain('connection: close');
    expect([context.fault, destroySoon.mock.calls.length]).toEqual(['credentials_required', 1]);
  });

  it('that is bad is told the version of WebSocket (RFC 6455, section 4.4)', () => {
    const { context, text } = createUpgrade();
    context.refuse({ reason: 'bad_handshake' });
    expect(text().toLowerCase()).toContain('sec-websocket-version: 13');
  });

  it('whose connection breaks ends, and harms nobody', async () => {
    const { context, socket } = createUpgrade();
    socket.emit('error', new Error('reset'));
    expect(socket.destroyed).toBe(true);
    expect(() => context.refuse({ reason: 'draining' })).not.toThrow();
    await turn();
  });

  it('holds its permit as long as the connection', async () => {
    const { context, socket } = createUpgrade();
    const release = vi.fn();
    context.hold(Object.assign(new RequestPermit([], 0, 0), { release }));
    context.outgoing.emit('close');
    expect(release).not.toHaveBeenCalled();
    socket.destroy();
    await turn();
    expect(release).toHaveBeenCalledTimes(1);
  });

  it('[E-03] that hits a fault of the gateway loses its connection', () => {
    const { context, socket } = createUpgrade();
    context.fail();
    expect(socket.destroyed).toBe(true);
  });
});
