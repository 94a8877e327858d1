/** Words for the reasons why the gateway refuses a request or ends a session. */
const texts = {
  credentials_required: 'no key',
  credentials_invalid: 'wrong key or token',
  credentials_expired: 'expired key or token',
  host_not_allowed: 'wrong host',
  origin_not_allowed: 'wrong origin',
  insufficient_scope: 'missing scope',
  too_many_sessions: 'too many sessions',
  deleted: 'the client ended it',
  idle: 'it was idle for too long',
  operator: 'an operator ended it',
  client_gone: 'its client is gone',
  superseded: 'its process is no longer kept',
  refused: 'the server refused to initialize',
  server_start_failed: 'the server did not start',
  server_start_timeout: 'the server did not answer in time',
  server_unauthorized: 'the server refused the gateway',
  client_unauthorized: 'the server refused the client',
  server_exited: 'the server exited',
  server_changed: 'the restarted server is a different one',
  crash_loop: 'the server exited again and again',
  line_too_long: 'a line of the server was too long',
  memory_limit: 'the server used too much memory',
  reconfigured: 'its server was reconfigured or removed',
  draining: 'the instance drains',
  released: 'another instance continues it',
  moved: 'another instance has it',
  store_unavailable: 'the store is unavailable',
  internal: 'an error of the gateway',
};

/** Describes a reason; one without words has its name. */
export const describeReason = (reason) => texts[reason] ?? reason.replaceAll('_', ' ');
