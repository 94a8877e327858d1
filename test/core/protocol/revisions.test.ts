import { describe, expect, it } from 'vitest';
import {
  assumedRevision,
  isLegacyRevision,
  legacyRevisions,
  namesModernRevision,
  sessionRevision,
} from '../../../src/core/protocol/known-revisions.ts';
import { revisions } from '../../../src/core/protocol/revisions.ts';

describe('revisions', () => {
  it('of the legacy era are served, oldest first', () => {
    expect(legacyRevisions).toEqual(['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25']);
    for (const version of legacyRevisions) expect(isLegacyRevision(version)).toBe(true);
  });

  it('[R7.04] without a header or a session that names one it is 2025-03-26', () => {
    expect(assumedRevision).toBe('2025-03-26');
  });

  it.each([
    ...['', ' ', '2026-07-28', '2025-11-26', '2024-10-07', '1.0', 'DRAFT-2026-v1', '2025-11-25 ', ' 2025-11-25'],
    ...[
      '2025-11-25, 2025-11-25',
      '2025-11-25\n',
      '２０２５-11-25',
      '__proto__',
      'constructor',
      'length',
      '0',
      'x'.repeat(8_192),
    ],
  ])('[B13] [R7.04] [S18] %j is not served', (version) => {
    expect(isLegacyRevision(version)).toBe(false);
  });

  it.each([
    ['2024-11-05', false, false],
    ['2025-03-26', false, true],
    ['2025-06-18', false, false],
    ['2025-11-25', true, false],
  ])('[R7.14] [B03] %s: priming events %s, batches %s', (version, primes, batches) => {
    expect(sessionRevision(version).primesStreams).toBe(primes);
    expect(sessionRevision(version).allowsBatches).toBe(batches);
  });

  it.each([
    ['2024-10-07', '2024-11-05'],
    ['2025-10-01', '2025-06-18'],
    ['2026-01-01', '2025-11-25'],
    ['2026-07-27', '2025-11-25'],
  ])('%s of a session that the server chose, but the gateway does not know, counts as %s', (chosen, known) => {
    expect(sessionRevision(chosen).name).toBe(known);
  });

  it('are dates in order, so that an unknown one can be placed', () => {
    const names = revisions.map(({ name }) => name);
    expect(names).toEqual([...new Set(names)].sort());
    expect(revisions.findIndex(({ era }) => era === 'modern')).toBe(legacyRevisions.length);
  });

  it.each([
    ['2025-11-25', false],
    ['2026-07-27', false],
    ['2026-07-28', true],
    ['2031-01-01', true],
    ['2031-1-1', false],
    ['x', false],
    [undefined, false],
  ])('%s is of the modern era: %s', (name, isModern) => {
    expect(namesModernRevision(name)).toBe(isModern);
  });
});
