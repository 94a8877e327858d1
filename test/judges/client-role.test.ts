import { fileURLToPath } from 'node:url';
import { beforeAll } from 'vitest';
import { installSuite } from '../conformance/suite.ts';
import { type Arm, testJudge } from './judge.ts';
import { suiteArm } from './suite-arm.ts';

const client = fileURLToPath(new URL('client.mjs', import.meta.url));

/**
 * The scenarios of the suite for clients. Those of OAuth (`auth/*`) are in authorization.test.ts, with a client that logs in
 * (docs/recipes/upstream-oauth.md).
 */
const scenarios2025 = [
  'initialize',
  'tools_call',
  'elicitation-sep1034-client-defaults',
  'sse-retry',
  'json-schema-2020-12-preservation',
];
const scenarios2026 = [
  'tools_call',
  'request-metadata',
  'sep-2322-client-request-state',
  'http-standard-headers',
  'http-custom-headers',
  'http-invalid-tool-headers',
  'json-schema-ref-no-deref',
  'json-schema-2020-12-preservation',
];

/** @param words the era of the client, and the options of a gateway between it and the mock server */
const armOf = (name: string, revision: string, scenarios: readonly string[], words: string): Arm =>
  suiteArm({ name, client, revision, scenarios, words });

beforeAll(installSuite);

const on2025 = (name: string, words: string): Arm => armOf(name, '2025-11-25', scenarios2025, words);
testJudge('Conformance suite, client role, 2025-11-25', on2025('direct', 'legacy'), [
  on2025('legacy client', 'legacy --through'),
  on2025('modern client, `--share all`', 'modern --through --share all'),
]);

const on2026 = (name: string, words: string): Arm => armOf(name, '2026-07-28', scenarios2026, words);
testJudge('Conformance suite, client role, 2026-07-28', on2026('direct', 'modern'), [
  on2026('modern client', 'modern --through'),
  on2026('modern client, `--era modern`', 'modern --through --era modern'),
  on2026('legacy client, `--era modern`', 'legacy --through --era modern'),
]);
