import { describe, expect, it } from 'vitest';
import {
  readInitialized,
  toDiscovery,
} from '../../../../../src/features/eras/translate/modern-on-legacy/legacy-discovery.ts';

const discovered = (result: string): string =>
  toDiscovery(readInitialized(Buffer.from(`{"jsonrpc":"2.0","id":0,"result":${result}}`)), '"d"', [
    '2026-07-28',
    '2025-11-25',
  ]).text.toString();

describe('the discovery of a legacy server', () => {
  it('[P1] [R3.02] says what it said at initialize, but of tasks', () => {
    const text = discovered(
      '{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"tasks":{"list":{}}, "x":1.0},"serverInfo":{"name":"ü"},"instructions":"\\u0061"}',
    );
    expect(text).toBe(
      '{"jsonrpc":"2.0","id":"d","result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","supportedVersions":["2026-07-28","2025-11-25"],"capabilities":{"tools":{"listChanged":true}, "x":1.0},"instructions":"\\u0061","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"ü"}}}}',
    );
  });

  it('of one that says little says no more', () => {
    expect(JSON.parse(discovered('{"capabilities":7,"instructions":null}')).result).toEqual({
      resultType: 'complete',
      ttlMs: 0,
      cacheScope: 'private',
      supportedVersions: ['2026-07-28', '2025-11-25'],
      capabilities: {},
    });
  });
});
