/**
 * Words for the errors with which the gateway refuses a request or ends a session. Each has a section in the
 * documentation.
 */
const errorTexts = {
  credentials_required: 'no key',
  credentials_invalid: 'wrong key or token',
  credentials_expired: 'expired key or token',
  host_not_allowed: 'wrong host',
  origin_not_allowed: 'wrong origin',
  insufficient_scope: 'missing scope',
  too_many_sessions: 'too many sessions',
  server_start_failed: 'the server did not start',
  server_start_timeout: 'the server did not answer in time',
  server_unauthorized: 'the server refused the gateway',
  server_exited: 'the server exited',
  line_too_long: 'a line of the server was too long',
  memory_limit: 'the server used too much memory',
  draining: 'the instance drains',
  store_unavailable: 'the store is unavailable',
  internal: 'an error of the gateway',
};

/** Words for the other reasons why a session ends. */
const endTexts = {
  deleted: 'the client ended it',
  idle: 'it was idle for too long',
  operator: 'an operator ended it',
  abandoned: 'its client has closed its stream',
  reused: 'a newer session of its client uses the process',
  client_gone: 'its client is gone',
  superseded: 'its process is no longer kept',
  refused: 'the server refused to initialize',
  client_unauthorized: 'the server refused the client',
  server_changed: 'the restarted server is a different one',
  crash_loop: 'the server exited again and again',
  reconfigured: 'its server was reconfigured or removed',
  released: 'another instance continues it',
  moved: 'another instance has it',
};

const texts = { ...errorTexts, ...endTexts };

/** Describes a reason; one without words has its name. */
export const describeReason = (reason) => texts[reason] ?? reason.replaceAll('_', ' ');

/** True for a reason that the documentation has a section about. A reason without words is an error. */
export const isDocumented = (reason) => !(reason in endTexts);
