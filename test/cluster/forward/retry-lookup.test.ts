import { expect, it, vi } from 'vitest';
import type { ClientOperation } from '../../../src/cluster/forward/client-operation.ts';
import { ClientReply } from '../../../src/cluster/forward/client-reply.ts';
import { ForwardedRequest } from '../../../src/cluster/forward/forwarded-request.ts';
import type { ForwardingHost } from '../../../src/cluster/forward/forwarding-host.ts';
import { retryLookup } from '../../../src/cluster/forward/retry-lookup.ts';
import { formatRequests, parseEventId } from '../../../src/protocol/wire/event-id.ts';
import { request } from '../../session/session-fixture.ts';
import { createFakeReply } from '../../support/fake-reply.ts';
import { postOf } from './forwarded-request-fixture.ts';

vi.mock('node:timers/promises', () => import('../../support/fake-delay.ts'));

const named = formatted('3.5-1', 'a');

/** An event id that names the request which its stream answers. */
function formatted(id: string, request: string) {
  const place = parseEventId(id);
  if (place === undefined) throw new Error(`${id} is no event id`);
  const requests = formatRequests([request]);
  return requests === undefined ? place : { ...place, requests };
}

/** Asks where a session is whose next takeover has to wait, twice, and is free then. */
async function askPaused(wanted: ClientOperation, isPassing: true | 'soon' = true, waitMs = 1_000) {
  const client = createFakeReply();
  const exchange = new ForwardedRequest('k', wanted, client, {} as ForwardingHost);
  const after = wanted.kind === 'listen' ? wanted.after : undefined;
  const reply = new ClientReply(client, wanted.kind === 'post' ? ['a'] : [], after);
  const paused = { fault: 'takeover_paused', isPassing } as const;
  const answers = [paused, paused, 'found' as const];
  const found = await retryLookup<string>(async () => answers.shift() ?? 'later', exchange, reply, {
    waitMs,
    isClosed: () => false,
  });
  return { found, given: client.given };
}

it('[U-01] [P3] [P7] a lookup waits out the pause before a takeover for a GET stream, but not for a request', async () => {
  expect(await askPaused({ kind: 'listen', after: undefined })).toEqual({ found: 'found', given: undefined });
  expect(await askPaused({ kind: 'listen', after: parseEventId('0.5-1') })).toEqual({
    found: 'found',
    given: undefined,
  });
  expect(await askPaused(postOf([request('a')]))).toMatchObject({ given: { reason: 'takeover_paused', id: 'a' } });
  expect(await askPaused({ kind: 'listen', after: named })).toMatchObject({ given: { reason: 'takeover_paused' } });
});

it('[U-01] [P3] a request waits out a short pause before a takeover, and hears of the pause if its time is over first', async () => {
  expect(await askPaused(postOf([request('a')]), 'soon')).toEqual({ found: 'found', given: undefined });
  expect(await askPaused(postOf([request('a')]), 'soon', 0)).toMatchObject({ given: { reason: 'takeover_paused' } });
});
