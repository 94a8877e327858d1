import { describe, expect, it } from 'vitest';
import type { Message } from '../../../../src/core/protocol/message/message.ts';
import { createRepeatFilter } from '../../../../src/features/remote/streamable-http/repeated-messages.ts';
import { asMessage } from '../../../support/as-message.ts';

const texts = (...values: string[]): readonly Message[] => values.map(asMessage);
const shown = (messages: readonly Message[]): string[] => messages.map(({ text }) => text.toString());

describe('what a resumed stream repeats', () => {
  it('is left out as often as it was taken, up to the first message that is new', () => {
    const leaveOut = createRepeatFilter(texts('tick', 'tick', 'a'))();
    expect(shown(leaveOut(texts('tick', 'tick')))).toEqual([]);
    expect(shown(leaveOut(texts('tick', 'b')))).toEqual(['tick', 'b']);
    expect(shown(leaveOut(texts('a')))).toEqual(['a']);
  });

  it('is left out of each stream by itself, and once in all', () => {
    const repeats = createRepeatFilter(texts('a', 'b'));
    const [first, second] = [repeats(), repeats()];
    expect(shown(first(texts('a', 'new')))).toEqual(['new']);
    expect(shown(second(texts('b', 'a')))).toEqual(['a']);
  });

  it('is nothing where nothing was taken', () => {
    expect(shown(createRepeatFilter([])()(texts('a')))).toEqual(['a']);
  });

  it('tells bytes apart that are no text', () => {
    const leaveOut = createRepeatFilter([asMessage(Buffer.from([0xff]))])();
    expect(leaveOut([asMessage(Buffer.from([0xfe]))])).toHaveLength(1);
  });
});
