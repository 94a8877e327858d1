import { expect, it } from 'vitest';
import { outcomeOfError } from './talker.ts';

it('takes the reason of an error for its outcome, and a 502 without one for the balancer that found no instance', () => {
  const failed = '{"error":{"code":-32000,"message":"…","data":{"reason":"server_start_failed"}}}';
  expect(outcomeOfError(new Error(`initialize failed with 502: ${failed}`))).toBe('server_start_failed');
  expect(outcomeOfError(new Error('initialize failed with 502: Bad Gateway'))).toBe('broken');
  expect(outcomeOfError(Object.assign(new Error('read'), { code: 'ECONNRESET' }))).toBe('broken');
  for (const told of [
    'SSE error: TypeError: fetch failed: other side closed',
    'Version negotiation probe failed: fetch failed',
  ])
    expect(outcomeOfError(new Error(told))).toBe('broken');
  expect(outcomeOfError(new Error('SSE error: Non-200 status code (503)'))).toBe('store_unavailable');
  expect(outcomeOfError(new Error('SSE error: Non-200 status code (404)'))).toContain('404');
  expect(outcomeOfError(new Error('something else'))).toBe('something else');
});
