import { fileURLToPath } from 'node:url';
import { beforeAll } from 'vitest';
import { installSuite } from '../conformance/suite.ts';
import { testJudge } from './judge.ts';
import { suiteArm } from './suite-arm.ts';

const client = fileURLToPath(new URL('auth-client.mjs', import.meta.url));

/** The scenarios with a login of a user. */
const logins = [
  'metadata-default',
  'metadata-var1',
  'metadata-var2',
  'metadata-var3',
  'basic-cimd',
  'scope-from-www-authenticate',
  'scope-from-scopes-supported',
  'scope-omitted-when-undefined',
  'scope-step-up',
  'scope-retry-limit',
  'token-endpoint-auth-basic',
  'token-endpoint-auth-post',
  'token-endpoint-auth-none',
  'pre-registration',
];
/** The scenarios that came with 2026-07-28. */
const logins2026 = [
  'resource-mismatch',
  'offline-access-scope',
  'offline-access-not-supported',
  'authorization-server-migration',
  'iss-supported',
  'iss-not-advertised',
  'iss-supported-missing',
  'iss-wrong-issuer',
  'iss-unexpected',
  'iss-normalized',
  'metadata-issuer-mismatch',
];
/** The scenarios of extensions, which belong to no revision. */
const extensions = [
  'client-credentials-jwt',
  'client-credentials-basic',
  'enterprise-managed-authorization',
  'wif-jwt-bearer',
  'dpop',
  'dpop-nonce',
];
const older = ['2025-03-26-oauth-metadata-backcompat', '2025-03-26-oauth-endpoint-fallback'];

beforeAll(installSuite);

/**
 * A judge with the SDK's client of this era, directly at the suite's server and through a gateway with `auth: upstream`:
 * once at a URL of the gateway's own, and once at the URL of the server.
 */
const testAuthorization = (of: string, era: string, names: readonly string[], revision?: string): void => {
  const scenarios = names.map((name) => `auth/${name}`);
  const arm = (name: string, words: string) => suiteArm({ name, client, revision, scenarios, words });
  testJudge(`Conformance suite, authorization, ${of}`, arm('direct', era), [
    arm('`--defaults.auth upstream`', `${era} --through --defaults.auth upstream`),
    arm("the same, at the server's URL", `${era} --in-front --defaults.auth upstream`),
  ]);
};
testAuthorization('2026-07-28', 'modern', [...logins, ...logins2026], '2026-07-28');
testAuthorization('2025-11-25', 'legacy', logins, '2025-11-25');
testAuthorization('2025-03-26', 'legacy', older, '2025-03-26');
testAuthorization('extensions', 'either', extensions);
