import { expect, test } from 'vitest';
import type { OpenBackend } from '../../src/backend/backend.ts';
import { type DecorateBackends, decorateBackends } from '../../src/backend/backend-decorator.ts';
import { createFakeServer } from '../support/fake-backend.ts';

test('decorators see the messages in their order, the first one nearest to the server; absent ones are left out', () => {
  const seen: string[] = [];
  const decorator =
    (name: string): DecorateBackends =>
    (server, open) =>
    (events, options) =>
      open(
        {
          ...events,
          onMessages(messages, relatedRequests) {
            seen.push(`${name} ${server} ${options?.session}`);
            events.onMessages(messages, relatedRequests);
          },
        },
        options,
      );
  const server = createFakeServer();
  const open = decorateBackends([decorator('near'), undefined, decorator('far')])('s', server.open);
  const events = { onNoise: () => undefined, onUnanswered: () => undefined, onEnd: () => undefined };
  open({ ...events, onMessages: () => void seen.push('client') }, { session: 'abcd1234' });
  server.backend.says({ jsonrpc: '2.0', id: 1, result: {} });
  expect(seen).toEqual(['near s abcd1234', 'far s abcd1234', 'client']);
});

test('without decorators an opener stays as it is', () => {
  const open: OpenBackend = createFakeServer().open;
  expect(decorateBackends([])('s', open)).toBe(open);
});
