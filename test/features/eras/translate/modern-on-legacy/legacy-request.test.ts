import { describe, expect, it } from 'vitest';
import {
  asLegacyNotification,
  asLegacyRequest,
} from '../../../../../src/features/eras/translate/modern-on-legacy/legacy-request.ts';
import { read } from '../../../../core/protocol/modern/read.ts';
import { fieldsInText, routingFields } from '../../../../support/routing-fields.ts';

const prefix = 'io.modelcontextprotocol/';
const envelope = `"${prefix}protocolVersion":"2026-07-28","${prefix}clientCapabilities":{"sampling":{}}`;
const request = (params: string, id = '"a"'): string =>
  `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":${params}}`;
function translated(params: string): string {
  const { request: sent } = asLegacyRequest(read(request(params)), 42);
  expect(routingFields(sent)).toEqual(fieldsInText(sent));
  return sent.text.toString();
}

describe('a request of a modern client for a legacy server', () => {
  it.each([
    [`{"name":"x","_meta":{${envelope}}}`, '{"name":"x"}'],
    [`{"_meta":{${envelope}},"name":"x"}`, '{"name":"x"}'],
    [`{ "_meta" : {${envelope}} }`, '{}'],
    [`{"_meta":{${envelope},"traceparent":"00-1"},"n":1.0}`, '{"_meta":{"traceparent":"00-1"},"n":1.0}'],
    [`{"_meta":{"a/b":[ 1 ],${envelope},"${prefix}logLevel":"info"}}`, '{"_meta":{"a/b":[ 1 ]}}'],
    [
      `{"_meta":{"${prefix}clientInfo":{"name":"c"},"a/b":1,"${prefix}protocolVersion":"2026-07-28","${prefix}unknown":2,"${prefix}clientCapabilities":{}}}`,
      `{"_meta":{"a/b":1,"${prefix}unknown":2}}`,
    ],
    [
      `{"requestState":"s","name":"x","inputResponses":{"k":{}},"_meta":{${envelope}},"task":{"ttl":1}}`,
      '{"name":"x"}',
    ],
    [`{"requestState":"s","_meta":{${envelope}}}`, '{}'],
  ])('[P1] [R3.10] %s is %s: without what only the modern era has', (before, after) => {
    expect(translated(before)).toBe(request(after, '42'));
  });

  it('[P1] [R3.10] has a number as its progress token, and gives back what the client wrote', () => {
    const text = request(`{"_meta":{${envelope},"progressToken":1.0}, "big":12345678901234567890}`, '"\\u0061"');
    const renumbered = asLegacyRequest(read(text), 42);
    expect(renumbered.request.text.toString()).toBe(
      request('{"_meta":{"progressToken":42}, "big":12345678901234567890}', '42'),
    );
    expect(renumbered).toMatchObject({ idText: '"\\u0061"', tokenText: '1.0' });
  });
});

it.each([
  ['{"a":1,"task":{},"_meta":{ENVELOPE,"x/y":1}}', '{"a":1,"task":{},"_meta":{"x/y":1}}'],
  ['{"a":1,"_meta":{ENVELOPE}}', '{"a":1}'],
  ['{"a":1}', '{"a":1}'],
])('[J-02] [P1] a notification of a modern client has no envelope at a legacy server: %s', (params, expected) => {
  const envelope =
    '"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}';
  const text = (of: string) => `{"jsonrpc":"2.0","method":"notifications/acme/hello","params":${of}}`;
  const notification = asLegacyNotification(read(text(params.replace('ENVELOPE', envelope))));
  expect(notification.text.toString()).toBe(text(expected));
  expect(routingFields(notification)).toEqual(fieldsInText(notification));
});
