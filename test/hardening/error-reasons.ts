import { expect } from 'vitest';
import { entryOf, isReason, type Reason } from '../../src/core/protocol/faults.ts';
import type { Message } from '../support/http-client.ts';

/** What servers, paths and addresses of these tests hold, and what only a stack, a library or Redis would say. */
export const disclosing =
  /canary|node:|\bat [\w.<]+ \(|\.[cm]?[jt]s\b|\/(?:tmp|home|usr|root|work|proc|no)\/|127\.0\.0\.1|localhost|::1|redis|ECONN|ENOENT|EPIPE|SIG[A-Z]{3}|exit code|\bpid\b|undici|ioredis|hono/i;

/** What `expectFromCatalogue` has seen in this run of a file. */
export const provoked = new Set<Reason>();

/** Checks an error as a client gets it: the catalogue's words and nothing else; what is in `data` beside says nothing of the inside. */
export function expectFromCatalogue(error: Message, status: number): Reason {
  const { reason } = error.data;
  if (!isReason(reason)) throw new Error(`${reason} is not of the catalogue`);
  const entry = entryOf(reason);
  expect(error.message).toBe(entry.explain?.(error.data) ?? entry.message);
  expect([200, entry.status]).toContain(status);
  expect(Object.keys(error).toSorted()).toEqual(['code', 'data', 'message']);
  expect(JSON.stringify(error)).not.toMatch(disclosing);
  provoked.add(reason);
  return reason;
}

/** Reasons that need more than `errors.test.ts` has, by the test that provokes them or asserts when they are said. */
export const elsewhere: Readonly<Record<string, readonly Reason[]>> = {
  'features/eras/modern-on-legacy/store-away': ['input_not_taken'],
  'features/eras/legacy-on-modern/rounds': ['input_too_large', 'too_many_rounds', 'unserved_result'],
  'features/eras/legacy-on-modern/translator': ['method_of_other_era', 'bad_log_level', 'bad_uri', 'slow_reader'],
  'fault/hangs': ['request_timeout', 'cancelled'],
  'fault/memory-limit': ['memory_limit'],
  'fault/storms': ['too_many_calls'],
  'hardening/bad-inputs': ['duplicate_id', 'history_lost'],
  'hardening/raw-sockets': ['request_too_slow'],
  'hardening/tls': ['plain_http'],
  'core/http/pipeline/admission': ['claim_missing'],
  'integration/changed-tools': ['tool_not_pinned'],
  'integration/credentials': ['credential_missing'],
  'integration/filters': ['unknown_tool', 'unknown_prompt', 'bad_arguments'],
  'integration/forwarded-headers': ['forwarded_too_large'],
  'integration/tasks': ['too_many_polls'],
  'integration/groups': ['bad_request_state'],
  'integration/foreign-suites': ['bad_filter', 'filter_too_large'],
  'integration/http-faults': ['server_refused', 'server_unauthorized', 'server_unreachable'],
  'integration/legacy-on-modern': ['server_not_modern', 'input_refused'],
  'integration/lifecycle': ['outcome_unknown', 'draining'],
  'integration/metrics': ['no_such_admin_path'],
  'integration/modern-starts': ['server_crash_loop'],
  'integration/policy': [
    'policy_denied',
    'policy_withheld',
    'policy_unavailable',
    'result_unchecked',
    'approval_impossible',
    'approval_declined',
  ],
  'integration/reload': ['server_reconfigured'],
  'integration/sse-face': ['modern_not_served', 'used_token'],
  'integration/complex-answers': ['response_too_complex'],
  'integration/result-limits': ['result_expired'],
  'integration/retry-after': ['server_overloaded'],
  'integration/upstream-authorization': [
    'upstream_unauthorized',
    'upstream_forbidden',
    'no_upstream_metadata',
    'bad_upstream_metadata',
    'upstream_proof_refused',
    'upstream_requires_proof',
  ],
  'integration/upstream-identity': ['upstream_token_refused', 'upstream_token_unavailable', 'access_token_required'],
  'integration/views': ['view_unavailable', 'bad_cursor', 'method_of_view'],
  'integration/websocket-ends': ['not_initialized', 'not_text', 'initialize_timeout', 'client_silent'],
  'features/filters/filter-messages': ['list_unreadable'],
  'features/sharing/shared-process': ['uri_too_long'],
  'features/eras/modern/changes/change-feed': ['subscription_refused', 'too_many_subscriptions'],
  'features/eras/modern/process/task-owners': ['unknown_task'],
  '../packages/json-scan/test/scan-large': ['key_too_long', 'too_many_values'],
  'features/eras/modern/process/shared-server': ['server_full', 'no_server_requests'],
  'core/session/outbound/logged-target': ['event_too_large'],
  'features/cluster/ownership/directory': ['other_configuration', 'takeover_paused'],
  'features/cluster/forward/forwarded-request': ['instances_differ', 'internal'],
  'features/cluster/two-instances/two-instances': ['server_busy', 'session_ended', 'owner_unreachable'],
  'core/session/session': ['handshake_too_large', 'initialize_too_large'],
  'core/session/outbound/server-requests': ['server_request_refused'],
  'features/eras/modern-on-legacy/session/input-gate': ['group_busy'],
};
