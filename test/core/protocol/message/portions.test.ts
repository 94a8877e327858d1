import { expect, it } from 'vitest';
import { portionsOf, readSmallTexts } from '../../../../src/core/protocol/message/server-texts.ts';

const textsOf = (method: string, params: object): Buffer[] =>
  Array.from({ length: 1_440 }, (_, n) =>
    Buffer.from(JSON.stringify({ jsonrpc: '2.0', method, params: { ...params, progress: n } })),
  );

it('[P8] progress of a known form fits into a turn four times as often as other texts', () => {
  const progress = textsOf('notifications/progress', { progressToken: 'portions' });
  const others = textsOf('notifications/other', {});
  const count = (texts: readonly Buffer[]): number => portionsOf(texts, (text) => text).length;
  expect([count(progress), count(others)]).toEqual([4, 4]);
  readSmallTexts(progress.slice(0, 2)); // the form is learned
  expect([count(progress), count(others)]).toEqual([1, 4]);
});
