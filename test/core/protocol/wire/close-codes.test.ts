import { describe, expect, it } from 'vitest';
import { allReasons, type Reason } from '../../../../src/core/protocol/faults.ts';
import { closeCodeOf } from '../../../../src/core/protocol/wire/close-codes.ts';

describe('the code of a closed WebSocket', () => {
  it.each(allReasons)('%s has one that may be sent, and is its own reason in the frame', (reason) => {
    const code = closeCodeOf(reason);
    const isStandard = code >= 1000 && code <= 1014 && ![1004, 1005, 1006].includes(code);
    const isRegistered = code === 3000; // Unauthorized, in IANA's registry
    expect(isStandard || isRegistered || (code >= 4000 && code <= 4999)).toBe(true);
    expect(Buffer.byteLength(reason)).toBeLessThanOrEqual(123); // RFC 6455, section 5.5
  });

  it.each([
    ['draining', 1012],
    ['not_text', 1003],
    ['internal', 1011],
    ['credentials_expired', 3000],
    ['initialize_timeout', 4408],
    ['client_silent', 4408],
    ['slow_reader', 4408],
    ['server_exited', 4502],
    ['line_too_long', 4502],
  ] satisfies [Reason, number][])('%s is %i, as docs/websocket.md says', (reason, code) => {
    expect(closeCodeOf(reason)).toBe(code);
  });
});
