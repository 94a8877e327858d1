import { describe, expect, it } from 'vitest';
import { newestModern } from '../../../../src/core/protocol/known-revisions.ts';
import { ownRequest, readEnvelope } from '../../../../src/core/protocol/modern/envelope.ts';
import { isWanted, readLogLevel } from '../../../../src/core/protocol/modern/log-levels.ts';
import { read, withMeta } from './read.ts';

const version = 'io.modelcontextprotocol/protocolVersion';
const capabilities = 'io.modelcontextprotocol/clientCapabilities';
const logLevel = 'io.modelcontextprotocol/logLevel';
const whole = { [version]: '2026-07-28', [capabilities]: {} };

describe('readEnvelope', () => {
  it('[R1.05] takes a request that does not say who its client is', () => {
    expect(readEnvelope(withMeta(whole))).toEqual({
      ok: true,
      envelope: { protocolVersion: '2026-07-28', revision: newestModern, logLevel: undefined },
    });
  });

  it.each([
    ['no version', { [capabilities]: {} }, [version]],
    ['a version that is no text', { ...whole, [version]: 20260728 }, [version]],
    ['no capabilities', { [version]: '2026-07-28' }, [capabilities]],
    ['capabilities that are no object', { ...whole, [capabilities]: [] }, [capabilities]],
    ['neither', {}, [version, capabilities]],
    ['no _meta', undefined, [version, capabilities]],
    ['_meta that is no object', 'x', [version, capabilities]],
  ])('[R1.04] refuses %s and names what is missing', (_, meta, missing) => {
    expect(readEnvelope(withMeta(meta))).toEqual({ ok: false, missing });
  });

  it('reads the level of log messages, and none where it is not one', () => {
    const levelOf = (value: unknown) => {
      const found = readEnvelope(withMeta({ ...whole, [logLevel]: value }));
      return found.ok && found.envelope.logLevel;
    };
    expect(levelOf('warning')).toBe('warning');
    expect(levelOf('loud')).toBeUndefined();
    expect(levelOf({})).toBeUndefined();
  });
});

describe('log levels', () => {
  it.each([
    ['debug', 'debug', true],
    ['debug', 'info', false],
    ['emergency', 'info', true],
    ['error', 'critical', false],
  ] as const)('%s is wanted from %s on: %s', (level, least, wanted) => {
    const notification = read({ jsonrpc: '2.0', method: 'notifications/message', params: { level, data: 1 } });
    expect(isWanted(notification, least)).toBe(wanted);
    expect(isWanted(notification, undefined)).toBe(false);
    expect(readLogLevel(level)).toBe(level);
  });
});

describe('a request of our own', () => {
  it('has a whole envelope', () => {
    const request = ownRequest(7, 'tools/list', { cursor: 'c' }, { version: '1.2.3', protocolVersion: '2026-07-28' });
    expect(request).toMatchObject({ kind: 'request', id: 7, method: 'tools/list', isModern: true });
    expect(readEnvelope(request).ok).toBe(true);
    expect(JSON.parse(request.text.toString()).params.cursor).toBe('c');
  });
});
