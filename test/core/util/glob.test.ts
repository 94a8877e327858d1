import { describe, expect, it } from 'vitest';
import { matchesGlob } from '../../../src/core/util/glob.ts';
import { costOf } from '../../support/cpu-time.ts';

describe('a pattern', () => {
  it.each([
    ['delete', 'delete', true],
    ['delete_all', 'delete', false],
    ['delete', 'Delete', false],
    ['delete_all', 'delete*', true],
    ['delete', 'delete*', true],
    ['undelete', 'delete*', false],
    ['undelete', '*delete', true],
    ['a_b_c', 'a*c', true],
    ['a_c_b', 'a*c', false],
    ['abcbc', 'a*bc', true],
    ['ab', '*a*b*', true],
    ['ba', '*a*b*', false],
    ['', '*', true],
    ['', '', true],
    ['a', '', false],
    ['a.b', 'a.b', true],
    ['axb', 'a.b', false],
    ['a[b]', 'a[b]', true],
    ['a?', 'a?', true],
    ['ab', 'a?', false],
    ['a\nb', 'a*b', true],
    ['𝕒x', '𝕒*', true],
  ])('%j of %j: %s', (text, pattern, is) => {
    expect(matchesGlob(text, pattern)).toBe(is);
  });

  it('with many stars takes no longer than text times pattern', () => {
    const match = () => expect(matchesGlob('a'.repeat(1_024), `${'*a'.repeat(500)}*b`)).toBe(false);
    expect(costOf(match, 5)).toBeLessThan(5);
  });
});
