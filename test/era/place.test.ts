import { expect, test } from 'vitest';
import { Place, type PlaceHost } from '../../src/era/groups/place.ts';
import type { SessionHandle } from '../../src/session/session-handle.ts';

const initialized = Buffer.from(
  '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}',
);

test('a place that is forgotten while another request looks for its session still says what its server said', async () => {
  let found: (handle: SessionHandle) => void = () => undefined;
  const host = {
    sessions: { ofGroup: () => new Promise<SessionHandle>((resolve) => (found = resolve)) },
    records: { find: async () => ({ initialized }) },
    settleMs: 1_000,
  } as unknown as PlaceHost;
  const principal = { issuer: '', subject: '', client: '' };
  let opened = 0;
  const place = new Place(host, { key: 'k', principal, capabilitiesText: '{}', topic: 't' }, () => {
    opened += 1;
  });
  const opening = place.open();
  while (opened === 0) await null;
  await null;
  place.forget();
  found({} as SessionHandle);
  expect(await opening).toMatchObject({ protocolVersion: '2025-11-25', opened: expect.anything() });
});
