/** What the suite asks of a server of one revision, as its `requirements/<revision>.yaml` has it. */
export interface Scenarios {
  readonly revision: string;
  readonly required: readonly string[];
  /** What it runs besides and does not score; the gateway passes these too. */
  readonly unscored: readonly string[];
  /** What cannot pass, with the check that fails and why: it is run all the same, and has to fail in this way alone. */
  readonly impossible?: readonly (readonly [scenario: string, check: string, reason: string])[];
}

/**
 * The 30 scenarios that a server must pass for 2025-11-25, as the suite's `requirements/2025-11-25.yaml` lists them: here
 * so that each is a test with a name. A test checks that the two lists are the same.
 */
const required2025 = [
  'server-initialize',
  'logging-set-level',
  'ping',
  'completion-complete',
  'tools-list',
  'tools-call-simple-text',
  'tools-call-image',
  'tools-call-audio',
  'tools-call-embedded-resource',
  'tools-call-mixed-content',
  'tools-call-with-logging',
  'tools-call-error',
  'tools-call-with-progress',
  'tools-call-sampling',
  'tools-call-elicitation',
  'elicitation-sep1034-defaults',
  'server-sse-multiple-streams',
  'elicitation-sep1330-enums',
  'resources-list',
  'resources-read-text',
  'resources-read-binary',
  'resources-templates-read',
  'resources-subscribe',
  'resources-unsubscribe',
  'prompts-list',
  'prompts-get-simple',
  'prompts-get-with-args',
  'prompts-get-embedded-resource',
  'prompts-get-with-image',
  'dns-rebinding-protection',
] as const;

export const scenarios2025: Scenarios = {
  revision: '2025-11-25',
  required: required2025,
  unscored: ['server-session-lifecycle', 'json-schema-2020-12', 'server-sse-polling'],
};

/** The 37 scenarios that a server must pass for 2026-07-28. */
const required2026 = [
  'server-stateless',
  'completion-complete',
  'tools-list',
  'tools-call-simple-text',
  'tools-call-image',
  'tools-call-audio',
  'tools-call-embedded-resource',
  'tools-call-mixed-content',
  'tools-call-error',
  'tools-call-with-progress',
  'server-sse-multiple-streams',
  'resources-list',
  'resources-read-text',
  'resources-read-binary',
  'resources-templates-read',
  'sep-2164-resource-not-found',
  'prompts-list',
  'prompts-get-simple',
  'prompts-get-with-args',
  'prompts-get-embedded-resource',
  'prompts-get-with-image',
  'dns-rebinding-protection',
  'caching',
  'input-required-result-basic-elicitation',
  'input-required-result-basic-sampling',
  'input-required-result-basic-list-roots',
  'input-required-result-request-state',
  'input-required-result-multiple-input-requests',
  'input-required-result-multi-round',
  'input-required-result-missing-input-response',
  'input-required-result-non-tool-request',
  'input-required-result-result-type',
  'input-required-result-unsupported-methods',
  'input-required-result-tampered-state',
  'input-required-result-capability-check',
  'input-required-result-ignore-extra-params',
  'input-required-result-validate-input',
] as const;

export const scenarios2026: Scenarios = {
  revision: '2026-07-28',
  required: required2026,
  unscored: ['json-schema-2020-12', 'http-header-validation', 'http-custom-header-server-validation'],
};

/** The same, and those of the extension for tasks, for a server that has it. `tasks-status-notifications` checks nothing. */
export const scenarios2026WithTasks: Scenarios = {
  ...scenarios2026,
  unscored: [
    ...scenarios2026.unscored,
    'tasks-lifecycle',
    'tasks-capability-negotiation',
    'tasks-wire-fields',
    'tasks-request-state-removal',
    'tasks-mrtr-input',
    'tasks-request-headers',
    'tasks-dispatch-and-envelope',
    'tasks-required-task-error',
    'tasks-mrtr-composition',
  ],
  impossible: [
    [
      'tasks-required-task-error',
      'sep-2663-server-returns-missing-capability-when-required',
      'wants a refusal of a tool that runs only as a task: behind the gateway, it works for a client without tasks (docs/decisions/0223)',
    ],
  ],
};

const noKeys =
  'wants the key user_name in inputRequests: a server with sessions asks without keys, and what the gateway calls its questions is its own';

/** For a server of the legacy era, for which the gateway translates. */
export const scenarios2026Translated: Scenarios = {
  ...scenarios2026,
  // The mirrored parameters of tools are of the modern era: no tool of such a server has any.
  unscored: scenarios2026.unscored.filter((scenario) => scenario !== 'http-custom-header-server-validation'),
  impossible: [
    ['input-required-result-basic-elicitation', 'sep-2322-elicitation-incomplete', noKeys],
    ['input-required-result-ignore-extra-params', 'sep-2322-ignore-unexpected-params', noKeys],
  ],
};
