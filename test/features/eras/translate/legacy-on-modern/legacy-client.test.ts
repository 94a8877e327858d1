import { describe, expect, it } from 'vitest';
import {
  readLegacyClient,
  withEnvelope,
} from '../../../../../src/features/eras/translate/legacy-on-modern/legacy-client.ts';
import { toInitializeResult } from '../../../../../src/features/eras/translate/legacy-on-modern/opening.ts';
import { readMessage } from '../../../../support/fake-backend.ts';
import { fieldsInText, routingFields } from '../../../../support/routing-fields.ts';

const initialize = (params: object) => readMessage({ jsonrpc: '2.0', id: 1, method: 'initialize', params });

describe('what a legacy client said of itself', () => {
  it.each([
    ['2024-11-05', '2024-11-05'],
    ['2025-11-25', '2025-11-25'],
    ['2026-07-28', '2025-11-25'],
    ['1999-01-01', '2025-11-25'],
    [undefined, '2025-11-25'],
    [7, '2025-11-25'],
  ])('[R7.06b] asked for %s it gets a session of %s', (protocolVersion, revision) => {
    expect(readLegacyClient(initialize({ protocolVersion })).revision).toBe(revision);
  });

  it.each([
    [{ roots: { listChanged: true }, sampling: {} }, '{"roots":{"listChanged":true},"sampling":{}}'],
    [{ tasks: { list: {} } }, '{}'],
    [
      { a: 1, tasks: {}, extensions: { 'io.modelcontextprotocol/tasks': {}, 'x/y': {} } },
      '{"a":1,"extensions":{"x/y":{}}}',
    ],
    [undefined, '{}'],
    ['all', '{}'],
  ])('its capabilities are told without tasks: %j', (capabilities, expected) => {
    expect(readLegacyClient(initialize({ capabilities })).capabilitiesText).toBe(expected);
  });

  it('[P1] goes into each request, with its own _meta kept', () => {
    const client = readLegacyClient(
      initialize({ clientInfo: { name: 'ü', version: '1' }, capabilities: { roots: {} } }),
    );
    const request = readMessage(
      '{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"progressToken":1.0},"x":1e400}}',
    );
    const key = (name: string) => `"io.modelcontextprotocol/${name}"`;
    const enveloped = withEnvelope(request, client, '2026-07-28', 'warning');
    expect(routingFields(enveloped)).toEqual(fieldsInText(enveloped));
    expect(enveloped.text.toString()).toBe(
      `{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{${key('protocolVersion')}:"2026-07-28",` +
        `${key('clientInfo')}:{"name":"ü","version":"1"},${key('clientCapabilities')}:{"roots":{}},` +
        `${key('logLevel')}:"warning","progressToken":1.0},"x":1e400}}`,
    );
    const silent = withEnvelope(request, { ...client, infoText: undefined }, '2026-07-28', undefined).text.toString();
    expect(silent).not.toContain('clientInfo');
    expect(silent).not.toContain('logLevel');
  });
});

describe('the answer to initialize', () => {
  const opening = (result: object) =>
    JSON.parse(
      toInitializeResult(
        readMessage({ jsonrpc: '2.0', id: 0, result }),
        'a',
        '2025-06-18',
        'configured',
      ).text.toString(),
    );

  it('says what the server said of itself, without tasks', () => {
    const serverInfo = { name: 'server', version: '2', title: 'T' };
    const answer = opening({
      resultType: 'complete',
      supportedVersions: ['2026-07-28'],
      capabilities: { tools: { listChanged: true }, extensions: { 'io.modelcontextprotocol/tasks': {} } },
      instructions: 'Be kind.',
      _meta: { 'io.modelcontextprotocol/serverInfo': serverInfo },
    });
    expect(answer).toEqual({
      jsonrpc: '2.0',
      id: 'a',
      result: {
        protocolVersion: '2025-06-18',
        capabilities: { tools: { listChanged: true }, extensions: {} },
        serverInfo,
        instructions: 'Be kind.',
      },
    });
  });

  it('names the server as it is configured where it does not say who it is', () => {
    expect(opening({ capabilities: 7 }).result).toEqual({
      protocolVersion: '2025-06-18',
      capabilities: {},
      serverInfo: { name: 'configured', version: 'unknown' },
    });
  });

  it('is the error of the server, if that is what it answers', () => {
    const error = '{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"x"}}';
    const answer = toInitializeResult(readMessage(error), 'a', '2025-06-18', 'x');
    expect(answer.text.toString()).toBe(error.replace('"id":1', '"id":"a"'));
    expect(routingFields(answer)).toEqual(fieldsInText(answer));
  });
});
