import { expect, test, vi } from 'vitest';
import { linkBackends } from '../../../../src/core/backend/link/link.ts';
import { ListCache } from '../../../../src/features/eras/modern/list-cache.ts';
import { openBackend } from '../../../core/backend/open-backend.ts';
import { asMessage } from '../../../support/as-message.ts';
import { createFakeServer } from '../../../support/fake-backend.ts';
import { modernBody } from '../../../support/modern-client.ts';

const user = (subject: string) => ({ principal: { issuer: 'i', subject, client: '' } });
const list = (params: object = {}, id: unknown = 1) => asMessage(modernBody('tools/list', params, { id }));
const answer = (ttlMs: number, more: object = {}) =>
  asMessage({
    jsonrpc: '2.0',
    id: 1,
    result: { resultType: 'complete', ttlMs, cacheScope: 'private', tools: [], ...more },
  });
const cacheOf = (legacyTtlMs = 0, onChanged: () => void = () => undefined) => new ListCache({ legacyTtlMs, onChanged });

/** A cache with the list of ada. */
function filled(response = answer(60_000), cache = cacheOf()): ListCache {
  cache.observe(list(), user('ada'), false)?.(response);
  return cache;
}

const found = (cache: ListCache, request = list(), client = user('ada')) => {
  const kept = cache.find(request, client);
  return kept && JSON.parse(kept.text.toString());
};

test('a list is kept for its time, under the id of each request, and says how much of the time is left', () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  try {
    const cache = filled();
    vi.advanceTimersByTime(20_000);
    expect(found(cache, list({}, 'other'))).toMatchObject({ id: 'other', result: { ttlMs: 40_000, tools: [] } });
    vi.advanceTimersByTime(40_000);
    expect(found(cache)).toBeUndefined();
  } finally {
    vi.useRealTimers();
  }
});

test('[P11] a list is for one user with the same headers, capabilities and cursor alone, also where it is public', () => {
  const cache = filled(answer(60_000, { cacheScope: 'public' }));
  expect(found(cache)).toBeDefined();
  expect(found(cache, list(), user('bob'))).toBeUndefined();
  const withToken = { ...user('ada'), forwarded: { authorization: 'Bearer a' } };
  expect(cache.find(list(), withToken)).toBeUndefined();
  expect(found(cache, list({ cursor: 'c' }))).toBeUndefined();
  const meta = { 'io.modelcontextprotocol/clientCapabilities': { sampling: {} } };
  expect(cache.find(asMessage(modernBody('tools/list', {}, { meta })), user('ada'))).toBeUndefined();
  expect(cache.find(asMessage(modernBody('prompts/list')), user('ada'))).toBeUndefined();
});

test.each([
  ['an error', asMessage({ jsonrpc: '2.0', id: 1, error: { code: 1, message: 'no' } })],
  ['a list without time', answer(0)],
  ['a round of input', answer(60_000, { resultType: 'input_required' })],
  ['a list over 1 MiB', answer(60_000, { tools: ['x'.repeat(1024 * 1024)] })],
])('%s is not kept', (_, response) => expect(found(filled(response))).toBeUndefined());

test('a request with answers or unknown parameters is not kept', () => {
  const cache = cacheOf();
  expect(cache.observe(list({ requestState: 's' }), user('ada'), false)).toBeUndefined();
  expect(cache.observe(asMessage(modernBody('tools/call')), user('ada'), false)).toBeUndefined();
  expect(cache.observe(list(), user('ada'), true)).toBeUndefined(); // a legacy server gives no time
});

test('the list of a legacy server gets the time that the operator allows', () => {
  const cache = cacheOf(5_000);
  const sent = cache.observe(list(), user('ada'), true)?.(answer(0));
  expect(JSON.parse(sent?.text.toString() ?? '').result).toMatchObject({ ttlMs: 5_000, cacheScope: 'private' });
  expect(found(cache).result.ttlMs).toBeLessThanOrEqual(5_000);
});

test('a change of a list and the end of a process drop all lists, and those that were on their way', async () => {
  const server = createFakeServer();
  let changes = 0;
  const count = (): void => {
    changes += 1;
  };
  const cache = filled(answer(60_000), cacheOf(0, count));
  const { end } = openBackend(linkBackends(server.open, cache.watch()));
  const late = cache.observe(list(), user('bob'), false);
  server.backend.says({ jsonrpc: '2.0', method: 'notifications/prompts/list_changed' });
  expect(found(cache)).toBeUndefined();
  late?.(answer(60_000));
  expect(found(cache, list(), user('bob'))).toBeUndefined();
  filled(answer(60_000), cache);
  server.backend.ends();
  await end();
  expect(found(cache)).toBeUndefined();
  expect(changes).toBe(2);
});

test('[P8] the number of lists and their bytes are limited', () => {
  const cache = cacheOf();
  const keep = (cursor: string, text: string) =>
    cache.observe(list({ cursor }), user('ada'), false)?.(answer(60_000, { tools: [text] }));
  for (let index = 0; index <= 1_000; index++) keep(`${index}`, '');
  expect(found(cache, list({ cursor: '0' }))).toBeUndefined();
  expect(found(cache, list({ cursor: '1000' }))).toBeDefined();
  for (let index = 0; index < 20; index++) keep(`large ${index}`, 'x'.repeat(1_000_000));
  expect(found(cache, list({ cursor: '1000' }))).toBeUndefined();
  expect(found(cache, list({ cursor: 'large 19' }))).toBeDefined();
});
