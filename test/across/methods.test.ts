import { describe, expect, it } from 'vitest';
import { policySettings } from '../../src/config/options/policy-option.ts';
import { ScopeRules } from '../../src/core/auth/scopes/scope-rules.ts';
import { foldedMethodOf } from '../../src/core/backend/filter-rules.ts';
import { isHarmless } from '../../src/core/call/rerun.ts';
import { readTaskUpdate } from '../../src/core/call/tasks.ts';
import { methodLabel, methodsOf } from '../../src/core/ops/metrics/method-labels.ts';
import { parseAffinity } from '../../src/core/protocol/affinity.ts';
import { newestModern } from '../../src/core/protocol/known-revisions.ts';
import { readCallName } from '../../src/core/protocol/message/call-name.ts';
import { createMessage } from '../../src/core/protocol/message/message.ts';
import { isVendorNotification } from '../../src/core/protocol/message/vendor-notification.ts';
import { extensions } from '../../src/core/protocol/methods/extensions.ts';
import type { Method } from '../../src/core/protocol/methods/method.ts';
import { unknownMethod } from '../../src/core/protocol/methods/method.ts';
import {
  isDroppedForModern,
  isQuestion,
  isRemoved,
  isUnknownToLegacy,
  isUnknownToModern,
  methodOf,
  methods,
} from '../../src/core/protocol/methods/methods.ts';
import { statusOf } from '../../src/core/protocol/modern/error-status.ts';
import { mirroredHeaders, missingHeader } from '../../src/core/protocol/modern/mirrored-headers.ts';
import { isChange } from '../../src/core/protocol/modern/subscription-filter.ts';
import { ClientState } from '../../src/core/session/record/client-state.ts';
import { isListChange, ListCache } from '../../src/features/eras/modern/list-cache.ts';
import { modernForm, needsSession } from '../../src/features/eras/modern-on-legacy/client-form.ts';
import { asModernResponse } from '../../src/features/eras/translate/modern-on-legacy/modern-response.ts';
import { blocksNextForMs } from '../../src/features/remote/http-client/post-order.ts';

const params = { name: 'n', uri: 'u://x', taskId: 't' };
const principal = { issuer: '', subject: '', client: '' };
const lists = new ListCache({ legacyTtlMs: 1_000 });
const toolRules = new ScopeRules({ requiredScopes: [], toolScopes: { n: ['tools'] } });
const defaultPolicy = policySettings({ url: 'http://127.0.0.1:8181/' });
const formed = { clientId: 1, idText: '1', serverInfoText: undefined, capabilitiesText: '{}', isRetry: false };
const affinity = parseAffinity('{meta:conversation}');

/** What the features say of a request. They are asked, and not the row. */
function featuresOfRequest(method: string): string[] {
  const request = createMessage({ id: 1, method, params });
  const result = createMessage({ id: 1, result: {} });
  const error = createMessage({ id: 1, error: { code: -32601, message: 'x' } });
  const client = new ClientState(createMessage({ id: 0, method: 'initialize' }).text, undefined, { isGroup: true });
  const headers = { 'mcp-protocol-version': newestModern.name, 'mcp-method': method };
  const begun = (['legacy', 'modern'] as const).filter((era) => methodsOf[era].includes(method));
  const { names, target } = foldedMethodOf(` ${method.toUpperCase()} `);
  const { inViews, mayAsk, isLongLived } = methodOf(method);
  const header = mirroredHeaders(request, newestModern)['mcp-name'];
  const modern = asModernResponse(result, { method, clientId: 1, idText: '1' });
  const notFound = createMessage({ id: 1, error: { code: -32002, message: 'x' } });
  const missing = modernForm.answered(notFound, { ...formed, request }).response;
  const facts: readonly (readonly [boolean, string])[] = [
    [methodLabel(method) !== 'other', 'metrics: own label'],
    [begun.length > 0, `metrics: from zero (${begun.join(', ')})`],
    [isQuestion(method), 'a server asks its client with it'],
    [mayAsk, 'its server may ask'],
    [isHarmless(request), 'runs again'],
    [client.noteAnswered(method, request.text, result), 'sets state: replayed to a new server'],
    [isLongLived, 'stays open'],
    [readCallName(request) !== undefined, 'logs and spans: name'],
    [toolRules.neededBy([request]).length > 0, 'scopes of tools'],
    [names !== undefined, `filter of ${names}s`],
    [target === 'ref', 'filter of prompts, by reference'],
    [
      header !== undefined,
      `Mcp-Name: ${header}${missingHeader(request, headers, newestModern) === undefined ? ', or none' : ''}`,
    ],
    [statusOf(error, method, () => true, newestModern) === 200, '-32601 has status 200'],
    [modern.text.includes('ttlMs'), 'cache members'],
    [lists.observe(createMessage({ id: 1, method }), { principal }, true) !== undefined, 'kept'],
    [defaultPolicy?.methods.has(method) === true, 'a policy decides'],
    [missing.text.includes('u://x'), 'a missing resource is named'],
    [affinity?.readMeta(request) === undefined, 'any conversation'],
    [blocksNextForMs(request) > 0, 'later requests wait'],
    [needsSession(request), 'needs a session'],
    [readTaskUpdate(request) !== undefined, `tasks: ${readTaskUpdate(request)}`],
    [isRemoved(method), 'modern endpoint: refused'],
    [isUnknownToLegacy(method), 'modern to legacy: refused'],
    [isUnknownToModern(method), 'legacy to modern: refused'],
    [true, `view: ${inViews}${inViews === 'target' ? ` by ${target}` : ''}`],
  ];
  return facts.filter(([isSo]) => isSo).map(([, words]) => words);
}

function featuresOfNotification(method: string): string[] {
  const notification = createMessage({ method, params });
  const { isOfRequest, changedLists } = methodOf(method);
  const facts: readonly (readonly [boolean, string])[] = [
    [isVendorNotification(notification), 'only its client and server know it'],
    [isOfRequest, 'of one request'],
    [isChange(notification), 'for subscribers'],
    [isListChange(notification), `ends kept lists; for all sessions of a process: ${changedLists}`],
    [isDroppedForModern(method), 'legacy to modern: dropped'],
  ];
  return facts.filter(([isSo]) => isSo).map(([, words]) => words);
}

const describeMethod = (name: string, { kind, from, eras, extension }: Method): string => {
  const features = kind === 'request' ? featuresOfRequest(name) : featuresOfNotification(name);
  const origin = extension === undefined ? '' : `, ${extension}`;
  return [`${name} (${from}, ${eras}${origin})`, ...features.map((feature) => `  ${feature}`)].join('\n');
};

describe('what the gateway knows about methods', () => {
  it('is what each feature does with each method', async () => {
    const known = methods.map((method) => describeMethod(method.name, method));
    const unknown = [
      describeMethod('vendor/method', unknownMethod),
      describeMethod('notifications/vendor', { ...unknownMethod, kind: 'notification' }),
    ];
    await expect(`${[...known, ...unknown].join('\n\n')}\n`).toMatchFileSnapshot('methods.txt');
  });

  it('stands in one row for each method', () => {
    const names = methods.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    expect(new Set(extensions.map(({ id }) => id)).size).toBe(extensions.length);
  });

  it('names only notifications that have a row, too', () => {
    const changed = methods.flatMap(({ list }) => list?.changed ?? []);
    expect(changed.filter((name) => methodOf(name).changedLists === undefined)).toEqual([]);
  });

  it('is nothing for a method without a row', () => {
    for (const name of ['vendor/method', 'TOOLS/CALL', '__proto__', '', undefined]) {
      expect(methodOf(name)).toBe(unknownMethod);
      expect(name === undefined ? 'other' : methodLabel(name)).toBe('other');
    }
  });
});
