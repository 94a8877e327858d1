import { describe, expect, it } from 'vitest';
import {
  allowsBatches,
  assumedRevision,
  hasPrimingEvent,
  isServedRevision,
  legacyRevisions,
} from '../../src/protocol/revisions.ts';

describe('revisions', () => {
  it('of the legacy era are served, oldest first', () => {
    expect(legacyRevisions).toEqual(['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25']);
    for (const version of legacyRevisions) expect(isServedRevision(version)).toBe(true);
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
    expect(isServedRevision(version)).toBe(false);
  });

  it.each([
    ['2024-11-05', false, false],
    ['2025-03-26', false, true],
    ['2025-06-18', false, false],
    ['2025-11-25', true, false],
  ])('[R7.14] [B03] %s: priming events %s, batches %s', (version, primes, batches) => {
    expect(hasPrimingEvent(version)).toBe(primes);
    expect(allowsBatches(version)).toBe(batches);
  });
});
