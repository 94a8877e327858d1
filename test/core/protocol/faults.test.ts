import { describe, expect, it } from 'vitest';
import {
  allReasons,
  codeOf,
  deniesReaching,
  entryOf,
  faultMessage,
  type Reason,
} from '../../../src/core/protocol/faults.ts';

/** Codes of -32020..-32099 that the specification defines (2026-07-28); the rest of that range is reserved for it. */
const definedBySpecification = [-32020, -32021, -32022];

describe('the catalogue of faults', () => {
  it.each(allReasons)('%s is a good answer', (reason) => {
    const { status, code, message, retryAfterS } = entryOf(reason);

    expect(reason).toMatch(/^[a-z]+(_[a-z]+)*$/);
    expect([200, 400, 401, 403, 404, 405, 406, 408, 413, 415, 417, 426, 429, 431, 500, 502, 503, 504]).toContain(
      status,
    );

    expect(Number.isInteger(code)).toBe(true);
    const isReserved = code <= -32020 && code >= -32099;
    expect(isReserved && !definedBySpecification.includes(code)).toBe(false);
    expect([-32700, -32600, -32601, -32602, -32603, -32000, -32001, -32020, -32021, -32022]).toContain(code);

    // Sentences for a person, without data of the request and without anything that helps an attacker.
    expect(message).toMatch(/^[A-Z][^\n\t]*[^\s.]\.$/);
    expect(message).toBe(message.trim());
    expect(message).not.toMatch(/ {2}|\.\.|undefined|\[object|NaN|\$\{|%[sdjo]|TODO|[Rr]edis|[Ss]tack/);
    expect(message).not.toMatch(/[0-9a-f]{8}-[0-9a-f]{4}|\/(?:home|usr|tmp|work|etc)\b|127\.0\.0\.1/i);
    expect(message.length).toBeLessThanOrEqual(200);

    if (status === 503) expect(retryAfterS).toBeGreaterThan(0);
    if (retryAfterS !== undefined) {
      expect(Number.isInteger(retryAfterS)).toBe(true);
      expect([429, 502, 503, 504]).toContain(status);
    }
  });

  it.each(allReasons)('[U-01] %s says the same in words and in data about whether the server was reached', (reason) => {
    const { message, retryAfterS } = entryOf(reason);
    // The next round of a call that waits: the same answers are sent again, and not the call.
    const isRound = reason === 'input_not_taken';
    if (/this request did not reach/i.test(message) || (retryAfterS !== undefined && !isRound))
      expect(deniesReaching(reason)).toBe(true);
    if (/unknown|in flight\.$/.test(message) && !/not valid/.test(message)) expect(deniesReaching(reason)).toBe(false);
  });

  it('says each thing once', () => {
    expect(new Set(allReasons.map((reason) => entryOf(reason).message)).size).toBe(allReasons.length);
  });

  it.each([
    ['not_json', 400, -32700],
    ['not_json_rpc', 400, -32600],
    ['bad_id', 400, -32600],
    ['duplicate_key', 400, -32600],
    ['too_deep', 400, -32600],
    ['duplicate_id', 400, -32600],
    ['batch_not_allowed', 400, -32600],
    ['empty_batch', 400, -32600],
    ['already_initialized', 400, -32600],
    ['body_too_large', 413, -32000],
    ['encoded_body', 415, -32000],
    ['bad_content_type', 415, -32000],
    ['not_acceptable', 406, -32000],
    ['method_not_allowed', 405, -32000],
    ['session_required', 400, -32000],
    ['unknown_session', 404, -32001],
    ['unsupported_version', 400, -32000],
    ['modern_not_served', 400, -32022],
    ['bad_event_id', 400, -32000],
    ['unknown_event_id', 404, -32001],
    ['origin_not_allowed', 403, -32000],
    ['host_not_allowed', 403, -32000],
    ['duplicate_header', 400, -32000],
    ['bad_target', 400, -32000],
  ] satisfies [Reason, number, number][])('%s is %i with %i, as docs/hardening.md says', (reason, status, code) => {
    expect(entryOf(reason)).toMatchObject({ status, code });
  });
});

describe('faultMessage', () => {
  it.each(allReasons)('%s is a JSON-RPC error on one line that says why', (reason) => {
    const text = faultMessage(reason, 7);
    const { code, message } = entryOf(reason);
    expect(JSON.parse(text)).toEqual({ jsonrpc: '2.0', id: 7, error: { code, message, data: { reason } } });
    expect(text).not.toMatch(/[\r\n]/);
  });

  it.each([0, -1, 2 ** 53 - 1, '', '0', 'id-canary', '__proto__', '\ud800', 'a"b\\c\n', null])(
    '[R7.03] [R9.04] carries the id %j as it is',
    (id) => {
      expect(JSON.parse(faultMessage('bad_id', id)).id).toBe(id);
    },
  );

  it('[S14] has the id in no other place, so that messages can be logged and compared', () => {
    for (const reason of allReasons) {
      const { error } = JSON.parse(faultMessage(reason, 'id-canary-4711'));
      expect(JSON.stringify(error)).not.toContain('canary');
      expect(error).toEqual(JSON.parse(faultMessage(reason, null)).error);
    }
  });

  it('adds data beside the reason', () => {
    const { data } = JSON.parse(faultMessage('modern_not_served', 1, { supported: ['2025-11-25'] })).error;
    expect(data).toEqual({ reason: 'modern_not_served', supported: ['2025-11-25'] });
  });
});

describe('[J-06] what an SDK shows, which is the message alone', () => {
  const messageOf = (reason: Reason, data?: Record<string, unknown>): string =>
    JSON.parse(faultMessage(reason, 1, data)).error.message;

  it('names the header that does not agree', () => {
    expect(messageOf('header_mismatch', { header: 'Mcp-Name', problem: 'missing' })).toBe(
      'Header mismatch: Mcp-Name is missing.',
    );
    expect(messageOf('header_mismatch', { header: 'Mcp-Param-Region', problem: 'different' })).toBe(
      'Header mismatch: Mcp-Param-Region differs from the body.',
    );
  });

  it('names the versions that are served', () => {
    for (const version of ['2024-11-05', '2025-11-25', '2026-07-28']) {
      expect(messageOf('unsupported_version')).toContain(version);
    }
    for (const reason of ['version_not_served', 'modern_not_served'] as const) {
      expect(messageOf(reason, { supported: ['2025-11-25', '2026-07-28'] })).toMatch(
        / Supported: 2025-11-25, 2026-07-28\.$/,
      );
    }
  });
});

describe('codeOf', () => {
  it.each(allReasons)(
    '[R3.07] %s has a code of the specification or one outside of its ranges in the modern era',
    (reason) => {
      const code = codeOf(reason, 'modern');
      const isReserved = code >= -32768 && code <= -32000;
      expect(isReserved).toBe([-32700, -32600, -32601, -32602, -32603, ...definedBySpecification].includes(code));
      expect(JSON.parse(faultMessage(reason, 1, {}, 'modern')).error.code).toBe(code);
      expect(codeOf(reason, 'legacy')).toBe(entryOf(reason).code);
    },
  );
});

it.each(['server_start_failed', 'server_start_timeout'] as const)('%s names what shows the reason', (reason) => {
  expect(entryOf(reason).message).toContain('mcp-gangway check');
});
