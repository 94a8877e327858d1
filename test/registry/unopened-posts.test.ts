import { expect, test } from 'vitest';
import { readGatewayMessage } from '../../src/protocol/message/message.ts';
import { UnopenedPosts } from '../../src/registry/unopened-posts.ts';
import type { SessionLookup } from '../../src/session/lookup.ts';
import { createFakeReply } from '../support/fake-reply.ts';

test('[P8] messages that wait while their session is opened have at most 16 MiB', () => {
  const posts = new UnopenedPosts({ open: () => new Promise(() => undefined), find: () => 'unknown_session' });
  const padding = 'x'.repeat(5 * 1024 * 1024);
  const given = [1, 2, 3, 4].map((id) => {
    const text = JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { padding } });
    const reply = createFakeReply();
    const messages = [readGatewayMessage(Buffer.from(text))];
    void posts.post({ key: 'k' } as SessionLookup, { id, version: undefined, messages, isBatch: false }, reply);
    return reply.given;
  });
  expect(given).toMatchObject([undefined, undefined, undefined, { reason: 'server_busy', id: 4 }]);
});
