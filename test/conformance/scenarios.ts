/**
 * The 30 scenarios that a server must pass for 2025-11-25, as the suite's `requirements/2025-11-25.yaml` lists them: here
 * so that each is a test with a name. A test checks that the two lists are the same.
 */
export const requiredScenarios = [
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

/** What the suite runs besides and does not score; the gateway passes these too. */
export const unscoredScenarios = ['server-session-lifecycle', 'json-schema-2020-12', 'server-sse-polling'] as const;
