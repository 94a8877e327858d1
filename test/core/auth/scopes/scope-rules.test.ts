import { describe, expect, it } from 'vitest';
import { Authorization, hasAllScopes } from '../../../../src/core/auth/scopes/authorization.ts';
import { withImplied } from '../../../../src/core/auth/scopes/scope-names.ts';
import { ScopeRules } from '../../../../src/core/auth/scopes/scope-rules.ts';
import { type Message, readBody } from '../../../../src/core/protocol/message/message.ts';

const rules = new ScopeRules({
  requiredScopes: ['base'],
  toolScopes: { 'write_*': ['files:write'], '*_all': ['admin', 'files:write'], read: ['files:read'] },
});

const messagesIn = (text: string): Message[] => {
  const body = readBody(Buffer.from(text), 100);
  if (!body.ok) throw new Error(body.reason);
  return body.messages.map((read) => {
    if (!read.ok) throw new Error(read.reason);
    return read.message;
  });
};

const call = (params: string, rest = '"id":1,"method":"tools/call"'): string =>
  `{"jsonrpc":"2.0",${rest},"params":${params}}`;

const neededBy = (text: string): readonly string[] => rules.neededBy(messagesIn(text));

const all = ['base', 'files:write', 'admin', 'files:read'];

describe('the scopes that messages need', () => {
  it.each([
    ['no call', call('{"name":"write_file"}', '"id":1,"method":"tools/list"'), ['base']],
    ['a tool without a rule', call('{"name":"echo"}'), ['base']],
    ['a tool of one rule', call('{"name":"write_file"}'), ['base', 'files:write']],
    ['a tool of two rules', call('{"name":"write_all"}'), ['base', 'files:write', 'admin']],
    ['another case', call('{"name":"Read"}'), ['base']],
    ['an escaped name', call('{"name":"\\u0072ead"}'), ['base', 'files:read']],
    ['an escaped key', call('{"n\\u0061me":"read"}'), ['base', 'files:read']],
    ['an escaped method', call('{"name":"read"}', '"id":1,"method":"tools\\/call"'), ['base', 'files:read']],
    ['a notification', call('{"name":"read"}', '"method":"tools/call"'), ['base', 'files:read']],
    ['a name deeper down', call('{"name":"echo","arguments":{"name":"read"}}'), ['base']],
    ['a list for a name', call('{"name":["read"]}'), all],
    ['a number for a name', call('{"name":7}'), all],
    ['no name', call('{}'), all],
    ['no params', '{"jsonrpc":"2.0","id":1,"method":"tools/call"}', all],
    ['an endless name', call(`{"name":"${'a'.repeat(2_000)}"}`), all],
    [
      'a batch',
      `[${call('{"name":"read"}')},${call('{"name":"echo"}')},${call('{"name":"write_x"}')}]`,
      ['base', 'files:read', 'files:write'],
    ],
  ])('%s', (_name, text, needed) => {
    expect(neededBy(text)).toEqual(needed);
    expect(neededBy(text)).toEqual(needed);
  });

  it('are looked up again where more names were made up than are remembered', () => {
    for (let i = 0; i < 3_000; i++) neededBy(call(`{"name":"made-up-${i}"}`));
    expect(neededBy(call('{"name":"write_late"}'))).toEqual(['base', 'files:write']);
  });
});

describe('whoever lacks some', () => {
  const authorization = new Authorization({ rules, resourceMetadata: new Map() });
  const identity = (scopes?: string[]) => ({ scopes: scopes && new Set(scopes), claims: {} }) as never;

  it('has all only if none is missing, or if nothing is said of scopes', () => {
    expect(hasAllScopes(identity(['base', 'admin']), ['base', 'admin'])).toBe(true);
    expect(hasAllScopes(identity(['base']), ['base', 'admin'])).toBe(false);
    expect(hasAllScopes(identity(), ['base', 'admin'])).toBe(true);
  });

  it('is told all that is needed at once, and what they have of what this server knows', () => {
    const needed = neededBy(call('{"name":"write_all"}'));
    expect(authorization.requestedScopes(identity(['files:read', 'openid']), needed)).toEqual(all);
    expect(authorization.challengeTo(identity(['base']), needed, { url: '/mcp' })).toEqual({
      reason: 'insufficient_scope',
      wwwAuthenticate: 'Bearer realm="mcp-gangway", error="insufficient_scope", scope="base files:write admin"',
    });
  });
});

it('a scope stands for others over any number of steps, also in a circle', () => {
  const hierarchy = new Map([
    ['a', ['b']],
    ['b', ['c', 'a']],
  ]);
  expect([...withImplied(['a'], hierarchy)]).toEqual(['a', 'b', 'c']);
  expect([...withImplied(['c'], hierarchy)]).toEqual(['c']);
});
