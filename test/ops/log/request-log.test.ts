import { describe, expect, test } from 'vitest';
import { requestIdFor } from '../../../src/ops/log/request-log.ts';

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

describe('the id of a request', () => {
  test.each(['3f2c8f6e-0b8a-4c54-9a51-0a1f0d7c9b10', '3F2C8F6E0B8A4C549A510A1F0D7C9B10'])(
    '%s is the one of a proxy',
    (given) => {
      expect(requestIdFor(given)).toBe(given);
    },
  );

  test.each([
    undefined,
    '',
    'Rn8dna6JFRzWPNkcddw-D4umZHWxWCDnQ3k952-nHXA', // the form of a session id
    '3f2c8f6e0b8a4c549a510a1f0d7c9b1',
    '3f2c8f6e0b8a4c549a510a1f0d7c9b100',
    '3f2c8f6e-0b8a-4c54-9a51-0a1f0d7c9b10\n',
    ['3f2c8f6e-0b8a-4c54-9a51-0a1f0d7c9b10', 'x'],
  ])('[P12] for %j there is a new one', (given) => {
    const id = requestIdFor(given);
    expect(id).toMatch(uuid);
    expect(id).not.toBe(given);
    expect(requestIdFor(given)).not.toBe(id);
  });
});
