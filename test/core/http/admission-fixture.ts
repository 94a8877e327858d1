import { anonymousIdentity, type Identity } from '../../../src/core/auth/identity.ts';
import { createOriginRules, type OriginOptions } from '../../../src/core/auth/origin-rules.ts';
import { Authorization } from '../../../src/core/auth/scopes/authorization.ts';
import { ScopeRules, type ScopeRulesOptions } from '../../../src/core/auth/scopes/scope-rules.ts';
import type { CallTelemetry, EndedCall } from '../../../src/core/call/call-events.ts';
import type { AdmissionOptions } from '../../../src/core/http/pipeline/admission.ts';
import { CredentialMarks } from '../../../src/core/keys/credential-marks.ts';
import { configuredKeys } from '../../../src/core/keys/state-keys.ts';
import type { Reason } from '../../../src/core/protocol/faults.ts';
import type { Server } from '../../../src/core/server/server.ts';

/** The rules of a gateway on a loopback address. */
export const originRules = (options: Partial<OriginOptions> = {}) =>
  createOriginRules({ host: '127.0.0.1', allowOrigin: [], allowHost: [], ...options });

/** Needs no scopes, unless some are given. */
export const createAuthorization = (options: Partial<ScopeRulesOptions> = {}): Authorization =>
  new Authorization({
    rules: new ScopeRules({ requiredScopes: [], toolScopes: {}, ...options }),
    resourceMetadata: new Map([['/mcp', 'https://gateway/metadata']]),
  });

export const alice: Identity = {
  ...anonymousIdentity,
  principal: { issuer: 'i', subject: 'alice', client: 'c' },
  scopes: new Set(['read']),
};

/** Options of an admission that lets everybody in as alice. */
export const createAdmissionOptions = (options: Partial<AdmissionOptions> = {}): AdmissionOptions => ({
  server: { name: 'git' } as Server,
  originRules: originRules(),
  authenticate: () => alice,
  marks: new CredentialMarks(configuredKeys(['k'.repeat(32)])),
  authorization: createAuthorization(),
  maxBodyBytes: 1_000,
  ...options,
});

/** Keeps what is reported about calls. */
export function createCallLog(): CallTelemetry & { readonly calls: EndedCall[]; readonly refusals: Reason[] } {
  const calls: EndedCall[] = [];
  const refusals: Reason[] = [];
  return {
    calls,
    refusals,
    wantsNames: true,
    emit(event) {
      if (event.type === 'call-ended') calls.push(event);
      else if (event.type === 'request-refused') refusals.push(event.reason);
    },
  };
}
