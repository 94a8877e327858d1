import { expect, it, test } from 'vitest';
import { redactCredentials } from '../../../src/core/ops/redact-credentials.ts';
import { costOf } from '../../support/cpu-time.ts';

it.each([
  ['a password', '{"password":"hunter2"}', 'hunter2'],
  ['a password with an escaped quote', '{"password":"hun\\"ter2","a":1}', 'ter2'],
  ['an access token', '{"access_token": "tok-123"}', 'tok-123'],
  ['a key in camel case', '{"apiKey":"k-123"}', 'k-123'],
  ['a key behind a prefix', '{"GITHUB_TOKEN":"g-123"}', 'g-123'],
  ['a number', '{"pwd": 12345}', '12345'],
  ['a session id', '{"Mcp-Session-Id":"s-123"}', 's-123'],
  ['a bearer token in a text', '{"text":"curl -H Authorization: Bearer abcdefgh12345"}', 'abcdefgh12345'],
  ['a JSON web token', 'see eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl here', 'eyJzdWIi'],
  ['a key of a service', 'sk-proj-abcdefghijklmnop1234', 'abcdefghijklmnop1234'],
  ['a password in a URL', 'redis://user:hunter2@host:6379', 'hunter2'],
  ['a password in a connection string', 'Server=db;Password=hunter2;Timeout=5', 'hunter2'],
  ['a private key', '-----BEGIN PRIVATE KEY-----\nMIIEvQ\n-----END PRIVATE KEY-----', 'MIIEvQ'],
])('leaves out %s', (_, text, secret) => {
  expect(text).toContain(secret);
  expect(redactCredentials(text)).not.toContain(secret);
});

it.each([
  '{"path":"/tmp/token.txt","text":"the secret of tokens"}',
  '{"progressToken":7,"method":"tools/call"}',
  '{"url":"http://127.0.0.1:8080/mcp"}',
])('leaves %s as it is', (text) => {
  expect(redactCredentials(text)).toBe(text);
});

test('[S-15] JSON web tokens are looked for in linear time', () => {
  // Where each beginning is read to the end, these are 2^35 steps.
  expect(costOf(() => redactCredentials('-eyJ'.repeat(262_144)), 50)).toBeLessThan(50);
});
