import { expect, test } from 'vitest';

const { describeLoss } = await import(new URL('../src/page/loss-text.js', import.meta.url).href);

test('the end of a drained gateway is no fault, and any other loss is', () => {
  const [heardAt, drainedAt] = [1_000, 2_000];
  expect(describeLoss({ state: 'away', heardAt, drainedAt })).toMatchObject({
    text: expect.stringMatching(/^Drained from this page at [\d:]+, the gateway has exited\. /),
    mood: '',
  });
  expect(describeLoss({ state: 'stale', heardAt, drainedAt })).toMatchObject({ mood: 'bad' });
  expect(describeLoss({ state: 'away', heardAt })).toMatchObject({
    text: expect.stringMatching(/^No connection since [\d:]+\. /),
    mood: 'bad',
  });
  expect(describeLoss({ state: 'away' }).title).toBe('No connection');
});
