import { allReasons, codeOf, entryOf, type Reason } from '../../src/core/protocol/faults.ts';

/** The sections of the page: each begins with this reason of the catalogue. */
const sections: ReadonlyMap<Reason, string> = new Map([
  ['not_json', 'The body of a request'],
  ['bad_content_type', 'Headers, protocol version and HTTP'],
  ['credentials_required', 'Authentication'],
  ['quota_sessions', 'Limits per user'],
  ['websocket_required', 'WebSocket'],
  ['session_required', 'Sessions and streams'],
  ['initialize_too_large', 'The MCP server'],
  ['bad_request_state', 'Translation between protocol versions'],
  ['outcome_unknown', 'Several instances'],
  ['too_many_sessions', 'The gateway'],
]);

/** Details beyond the message: the usual cause, and the remedy for the operator or the client's developer. */
const notes: Partial<Record<Reason, string>> = {
  duplicate_key:
    'The gateway treats keys that differ only in case, such as `Name` and `name`, as duplicates. Servers in Go and .NET ignore the case of keys.',
  too_many_members: 'The limit does not apply to tool arguments.',
  too_many_values: 'Parsing a larger body would take too much time and memory.',
  too_deep: 'The limit is 100 levels.',
  batch_not_allowed: 'The session uses a protocol revision other than 2025-03-26.',
  body_too_large: 'The limit is `--limits.request.body` (4 MiB).',
  bad_content_type: 'By default, `curl -d` sends form data. Add `-H "Content-Type: application/json"`.',
  not_acceptable: 'With curl, add `-H "Accept: application/json, text/event-stream"`.',
  duplicate_header:
    'A duplicate header is refused even if both values are equal. Some proxies add a header that the client already sends.',
  forwarded_too_large:
    'The limit applies to the headers that `--defaults.forwardHeaders` and `--defaults.credentials` name.',
  credential_missing:
    'The option `--defaults.credentials` or the key `credentials` requires this: see [credentials.md](../credentials.md).',
  claim_missing:
    'The option `--defaults.credentials` or the key `credentials` requires this: see [credentials.md](../credentials.md).',
  origin_not_allowed:
    'The request comes from a web page on another site. The value of `--allow-origin`, such as `https://app.example.com`, needs the scheme and any non-default port.',
  host_not_allowed:
    'On 127.0.0.1 the gateway accepts only local names, which prevents DNS rebinding. A proxy or a container often uses another name. Allow the other name with `--allow-host mcp.example.com`.',
  modern_not_served:
    'A 2026-07-28 request arrived at an endpoint for older clients, `/sse` or `/ws`. Use `/mcp`, or a version from `error.data.supported`.',
  bad_envelope:
    '`error.data.missing` lists the missing members. In a session of an older revision, remove the header `MCP-Protocol-Version: 2026-07-28`. [Eras](../eras-reference.md#sending-modern-requests) has an example.',
  header_mismatch:
    '`error.data.header` names the header, and `error.data.problem` is `missing` or `different`. After this error, the SDKs list the tools again and repeat the request. A proxy may have removed the header.',
  version_not_served: '`error.data.supported` lists the versions that the server and the gateway support.',
  method_removed:
    'The request has the header `MCP-Protocol-Version: 2026-07-28`, but only older revisions have its method, for example `initialize` or `ping`. Remove the header to use a session.',
  post_only:
    'The request has the header `MCP-Protocol-Version: 2026-07-28`. Only older revisions also use GET and DELETE. Remove the header to use a session.',
  only_a_stream: 'Clients that support both transports switch automatically.',
  no_such_path: 'With several servers, there is no endpoint at `/mcp`. Use `/<name>/mcp`.',
  credentials_required: '`mcp-gangway key <name>` creates a key. For tokens, see [oauth.md](../oauth.md).',
  credentials_invalid:
    'For API keys, compare the entry in the `--api-keys-file` file. For tokens, the table in [oauth.md](../oauth.md) lists the causes.',
  dpop_nonce_required:
    'This is the first step of every client with DPoP, and a repeated one after two minutes without a request. Client libraries repeat the request by themselves. See [oauth.md](../oauth.md#tokens-that-are-bound-to-a-key).',
  insufficient_scope: 'See [authentication.md](../authentication.md) and [oauth.md](../oauth.md).',
  token_not_checked: 'See [oauth.md](../oauth.md).',
  quota_sessions: 'The limit is `--limits.user.sessions`: see [limits.md](../limits.md).',
  quota_processes: 'The limit is `--limits.user.processes`: see [limits.md](../limits.md).',
  quota_starts: 'The limit is `--limits.user.startsPerMinute`: see [limits.md](../limits.md).',
  quota_streams: 'The limit is `--limits.user.streams`: see [limits.md](../limits.md).',
  quota_requests: 'The limit is `--limits.user.requestsPerSecond`: see [limits.md](../limits.md).',
  quota_bytes: 'The limit is `--limits.user.inFlight`: see [limits.md](../limits.md).',
  websocket_required: 'Use `ws://…/ws` in a WebSocket client, and `/mcp` for HTTP.',
  slow_reader: 'The time limit is `--timeouts.slowReader` (30 s).',
  session_required:
    'Browsers, and curl without `initialize`, also get this error. With `--defaults.sessionless serve`, the gateway answers requests without a session.',
  unknown_session:
    'The session was idle for `--session-idle` (30 min), was deleted, or ended because its server ended. A gateway without Redis loses all sessions when it restarts. The log line `session ended` contains the reason. Clients must open a new session.',
  unknown_token:
    'The session of an HTTP+SSE client has ended, or the client opened a second stream. Most HTTP+SSE clients must be reconnected manually. With a larger `--session-idle`, sessions survive longer interruptions.',
  history_lost: 'The limits are `--replay.maxSize`, `--replay.totalMaxSize` and `--replay.maxAge`.',
  handshake_too_large: 'The limits are 64 characters for the version and 64 KiB for the capabilities.',
  server_start_failed:
    '`/readyz` on the operator port (`http://127.0.0.1:9464/readyz`) shows the cause and a remedy in the field `last` of the server. `mcp-gangway check` also shows the output of the server.',
  server_start_timeout:
    'The time limit is `--defaults.timeouts.start` (60 s). Often `npx` or `uvx` is still downloading the server, or the program is not an MCP server. `mcp-gangway check` downloads the server and shows its output.',
  server_exited:
    'The gateway starts the server again, and the session continues. After six exits within a minute, the session ends and the log contains the reason `crash_loop`. The log also contains the exit code and, with `--log-level debug`, the output of the server.',
  server_refused:
    'The remote server answered with an error status, or ended its response early. `--log-level debug` shows the status.',
  server_unauthorized:
    'The status is not 401, because clients would then look for credentials for the gateway. With `--defaults.auth upstream`, clients get the 401 and the OAuth metadata of the server instead, and log in there. `--header` sets credentials for all clients. `--defaults.forwardHeaders Authorization` lets each client send its own credentials.',
  server_unreachable:
    'The remote server was unreachable for more than 15 s, or its answer could not be resumed. The session continues when the server is reachable again.',
  group_busy:
    'Clients should answer elicitations faster. With `--share user`, calls do not wait for those of other users. For a server without state, the operator can raise `--defaults.poolMax`.',
  server_not_modern: '`--era modern` is set, or the gateway previously detected that the server supports 2026-07-28.',
  server_crash_loop:
    'A process that all clients share exited six times within a minute, so the gateway waits 30 s before the next start. The log contains the exit codes and, with `--log-level debug`, the output of the server.',
  server_full: 'The limit is 4,096 requests per server, including subscriptions: 16 times `--limits.session.requests`.',
  line_too_long: 'The limit is 64 MiB.',
  memory_limit: 'The limit is `--defaults.process.memory`.',
  event_too_large: 'The limit is half of `--replay.maxSize` (8 MiB).',
  response_too_complex: 'A server can return large data as one string or as a resource.',
  request_timeout:
    'The time limits are `--timeouts.requestIdle` (10 min) without progress and `--timeouts.requestTotal` (6 h) in total. SDK clients have their own limit of 60 s. To change this limit, pass the request options `{ timeout, resetTimeoutOnProgress: true }`.',
  too_many_calls: 'The limit is `--limits.session.requests` (256) per session.',
  bad_request_state:
    'If neither Redis nor `--cluster.stateKeys` is configured, all request states become invalid when the gateway restarts. The gateway accepts only one set of answers for each request state.',
  method_of_other_era: '[Eras](../eras-reference.md#legacy-clients-on-a-modern-server) lists the translated methods.',
  input_refused: 'The client must support every capability that it declares (sampling, elicitation or roots).',
  too_many_rounds: 'The limit is ten rounds of input per request. The tool must finish within this limit.',
  session_ended:
    'The client tried to resume a stream of a session that has ended: see [unknown_session](#unknown_session).',
  outcome_unknown: 'The session continues on another instance. See [scaling.md](../scaling.md).',
  store_unavailable:
    'Redis did not answer within `--cluster.lease` (6 s), or is full. The log of the gateway shows the cause.',
  input_not_taken:
    'Redis did not answer within `--cluster.lease` (6 s), or is full. The log of the gateway shows the cause.',
  owner_unreachable:
    'Instances must reach each other. The log and the status page name the instance that cannot be reached. See [scaling.md](../scaling.md).',
  takeover_paused: 'Find out why the instances failed. The server of this session may be the cause.',
  other_configuration: 'Give all instances the same configuration and version.',
  server_reconfigured: 'See [health.md](../health.md#reload).',
  too_many_sessions: 'The limit is `--max-sessions` (1,000). A smaller `--session-idle` ends idle sessions earlier.',
  too_many_starts: 'The limit is `--limits.total.startsPerMinute`.',
  gateway_busy: 'The limit is `--limits.total.inFlight`.',
  instances_differ: 'Finish the upgrade of all instances.',
  internal: 'Please report this as a bug, and include the stack trace from the log.',
};

/** `docs/reference/errors.md`. */
export function renderErrors(): string {
  return `<!-- Generated by npm run docs from src/core/protocol/faults.ts and scripts/docs/errors.ts. -->

# Errors

Each error from the gateway is a JSON-RPC error with its reason in \`error.data.reason\`. SDKs show only the message.

- The **status** is the HTTP status. If the response is already an event stream, the same error arrives as an event.
- Errors of \`server/discover\` have the status 200 instead of 5xx, because clients would otherwise fall back to an older revision.
- This page does not list errors that MCP servers send.
- **Reached the server: no** means that it is safe to repeat the request. **Reached the server: possible** means that the request may have taken effect.
- The **retry after** time is also sent in the header \`Retry-After\`.

${allReasons.map(render).join('\n\n')}
`;
}

function render(reason: Reason): string {
  const { status, message, reached, retryAfterS } = entryOf(reason);
  const section = sections.get(reason);
  const codes = [...new Set([codeOf(reason, 'legacy'), codeOf(reason, 'modern')])];
  const facts = [
    `Status ${status}`,
    `code ${codes.length === 1 ? codes[0] : `${codes[0]} (${codes[1]} for 2026-07-28)`}`,
    `reached the server: ${reached === undefined ? 'no' : 'possibly'}`,
    ...(retryAfterS === undefined ? [] : [`retry after ${retryAfterS} s`]),
  ];
  return [
    ...(section === undefined ? [] : [`## ${section}`]),
    `### ${reason}`,
    `${facts.join(' · ')}`,
    `> ${message}`,
    ...(notes[reason] === undefined ? [] : [notes[reason]]),
  ].join('\n\n');
}
