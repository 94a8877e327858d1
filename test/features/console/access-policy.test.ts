import type { IncomingMessage } from 'node:http';
import { expect, test } from 'vitest';
import { ApiKeys, digestOfKey } from '../../../src/core/auth/api-keys.ts';
import { createAuthenticate } from '../../../src/core/auth/authenticate.ts';
import {
  denyAll,
  makeStartToken,
  requireScope,
  requireStartToken,
} from '../../../src/features/console/access-policy.ts';
import { requestWith } from '../../core/auth/authentication-request.ts';

const incoming = (key?: string): IncomingMessage =>
  requestWith(key === undefined ? {} : { authorization: `Bearer ${key}` }, { url: '/status/about' });

const keys = new ApiKeys([
  { name: 'viewer', sha256: digestOfKey('viewer-key'), scopes: ['gangway:status'] },
  { name: 'operator', sha256: digestOfKey('operator-key'), scopes: ['gangway:status', 'gangway:sessions'] },
  { name: 'client', sha256: digestOfKey('client-key') },
]);
const door = requireScope(createAuthenticate({ authenticators: [keys.authenticator] }));

test.each([
  ['nobody', undefined, 'gangway:status', 401],
  ['an unknown key', 'other-key', 'gangway:status', 401],
  ['who may look', 'viewer-key', 'gangway:status', undefined],
  ['who may look and wants to end a session', 'viewer-key', 'gangway:sessions', 403],
  ['who may end sessions', 'operator-key', 'gangway:sessions', undefined],
  ['who may end sessions and wants to end the instance', 'operator-key', 'gangway:drain', 403],
  ['a client whose key allows everything at servers', 'client-key', 'gangway:status', 403],
] as const)('at the guarded door %s is let in by scopes that are named', async (_, key, scope, status) => {
  expect((await door(incoming(key), scope))?.status).toBe(status);
});

test('[S-04] at the door of a word that is let in, and all else is told what to show', async () => {
  const word = makeStartToken();
  expect(word).toMatch(/^[\w-]{43}$/);
  expect(makeStartToken()).not.toBe(word);
  const byWord = requireStartToken(word);
  expect(await byWord(incoming(word), 'gangway:drain')).toBeUndefined();
  for (const shown of [undefined, 'viewer-key', word.slice(1), `${word}x`])
    expect(await byWord(incoming(shown), 'gangway:status')).toMatchObject({ status: 401, asksFor: 'token' });
});

test('the closed door is open for nobody', async () => {
  expect((await denyAll(incoming('viewer-key'), 'gangway:status'))?.status).toBe(403);
});
