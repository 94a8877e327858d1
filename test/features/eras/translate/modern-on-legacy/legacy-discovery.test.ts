import { describe, expect, it } from 'vitest';
import {
  type InitializedServer,
  readInitialized,
  toDiscovery,
} from '../../../../../src/features/eras/translate/modern-on-legacy/legacy-discovery.ts';

const initialized = (result: string): InitializedServer | undefined =>
  readInitialized(Buffer.from(`{"jsonrpc":"2.0","id":0,"result":${result}}`));
const discovered = (result: string): string =>
  toDiscovery(initialized(result) as InitializedServer, '"d"', ['2026-07-28', '2025-11-25']).text.toString();

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
    expect(
      JSON.parse(discovered('{"protocolVersion":"2025-11-25","capabilities":7,"instructions":null}')).result,
    ).toEqual({
      resultType: 'complete',
      ttlMs: 0,
      cacheScope: 'private',
      supportedVersions: ['2026-07-28', '2025-11-25'],
      capabilities: {},
    });
  });

  it('needs an answer that opens a session', () => {
    expect(initialized('{"protocolVersion":"2025-06-18"}')?.protocolVersion).toBe('2025-06-18');
    expect(initialized('{"capabilities":{}}')).toBeUndefined();
  });
});
