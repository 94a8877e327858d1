import { type Era, legacyRevisions, modernRevisions } from './revisions.ts';

/**
 * The catalogue of everything that can go wrong and be said to a client: one entry per reason, with its HTTP status,
 * its JSON-RPC code and whether trying again can help. `http/respond.ts` is the one place that turns an entry into a
 * response, and `session/` the one that turns it into an event.
 *
 * Codes: -32700, -32600 and -32601 as JSON-RPC 2.0 defines them; -32000 and -32001 are what the official SDK's server
 * sends on the legacy face and what today's clients therefore see; -32020 and -32022 are defined by the specification
 * (2026-07-28), which keeps the rest of -32000 to -32099 from new uses: see `gatewayErrorCode`.
 * Clients that want to tell cases apart read `error.data.reason`, which is the entry's key.
 */
interface CatalogueEntry {
  /** HTTP status, where the answer has not begun; in band the code alone is sent. */
  readonly status: number;
  /** JSON-RPC error code; in the modern era see `gatewayErrorCode`. */
  readonly code: number;
  /** What happened and what to do about it, in one or two sentences, without ids, paths or contents. */
  readonly message: string;
  /**
   * `maybe` if the request may have reached the server. Every other entry promises that no request beside `initialize`
   * has, so that a client may send it again. Tests compare this promise with what servers really ran.
   */
  readonly reached?: 'maybe';
  /**
   * The message where `data` says more. Users of an SDK see nothing but the message. Undefined if it says nothing.
   * @param data holds names and versions of the gateway's own lists only
   */
  readonly explain?: (data: Readonly<Record<string, unknown>>) => string | undefined;
  /** Seconds after which the same request can succeed; absent where a retry does not help. */
  readonly retryAfterS?: number;
  /** The methods that there are, where another one was used (RFC 9110, section 15.5.6). */
  readonly allow?: string;
}

/** Says which header it is: `data.header`, and whether it is there: `data.problem`. */
const explainHeader = ({ header, problem }: Readonly<Record<string, unknown>>): string | undefined => {
  if (typeof header !== 'string') return undefined;
  const what = problem === 'missing' ? 'is missing' : 'does not say what the body says';
  return `Header mismatch: ${header} ${what}.`;
};

/** Adds the revisions of `data.supported` to a sentence. */
const withVersions =
  (sentence: string) =>
  ({ supported }: Readonly<Record<string, unknown>>): string | undefined =>
    Array.isArray(supported) ? `${sentence} Supported: ${supported.join(', ')}.` : undefined;

const notServedSentence =
  'This protocol version is not served here. Open a session with initialize at one of the supported versions.';
const otherVersionSentence = 'Unsupported protocol version: send the request at one of the supported versions.';

const catalogue = {
  // The body
  not_json: { status: 400, code: -32700, message: 'Parse error: the body is not valid JSON in UTF-8.' },
  not_json_rpc: {
    status: 400,
    code: -32600,
    message: 'Invalid request: the body is not a JSON-RPC 2.0 request, notification or response.',
  },
  bad_id: {
    status: 400,
    code: -32600,
    message: 'Invalid request: an id is a string of at most 256 characters or an integer between -(2^53-1) and 2^53-1.',
  },
  duplicate_key: {
    status: 400,
    code: -32600,
    message:
      'Invalid request: a key by which the message is read stands twice, or differs in case alone from another key or from the one that MCP defines. Write it once, as MCP spells it.',
  },
  too_many_members: {
    status: 400,
    code: -32600,
    message: 'Invalid request: the message, its params or params._meta have more than 4096 members.',
  },
  too_many_values: {
    status: 400,
    code: -32600,
    message:
      'Invalid request: the JSON has more than 8 MiB and more than 1,048,576 values, or twice as many escapes. Send less at once.',
  },
  key_too_long: {
    status: 400,
    code: -32600,
    message: 'Invalid request: a key of the message, its params or params._meta has more than 4096 bytes.',
  },
  too_deep: { status: 400, code: -32600, message: 'Invalid request: the JSON is nested too deeply.' },
  duplicate_id: {
    status: 400,
    code: -32600,
    message: 'Invalid request: a request with this id is already in flight in this session. Use a fresh id.',
  },
  batch_not_allowed: {
    status: 400,
    code: -32600,
    message: 'Invalid request: batches exist only in protocol revision 2025-03-26. Send one message per POST.',
  },
  empty_batch: { status: 400, code: -32600, message: 'Invalid request: the batch is empty.' },
  batch_too_large: { status: 400, code: -32600, message: 'Invalid request: the batch has too many messages.' },
  body_too_large: { status: 413, code: -32000, message: 'The body is larger than this gateway accepts.' },
  encoded_body: {
    status: 415,
    code: -32000,
    message: 'Content-Encoding is not accepted. Send the body as plain JSON.',
  },

  // The headers
  bad_content_type: {
    status: 415,
    code: -32000,
    message: 'Unsupported media type: send the message with Content-Type: application/json.',
  },
  not_acceptable: {
    status: 406,
    code: -32000,
    message:
      'Not acceptable: Accept must allow application/json or text/event-stream, and text/event-stream for a GET.',
  },
  duplicate_header: {
    status: 400,
    code: -32000,
    message:
      'Bad request: a header that may be sent only once was sent twice, or has a value with characters that are not visible ASCII. Send it once; encode other characters.',
  },
  forwarded_too_large: {
    status: 431,
    code: -32000,
    message: 'The headers of this request that go on to the MCP server are larger than this gateway accepts.',
  },
  credential_missing: {
    status: 400,
    code: -32000,
    message:
      'The MCP server needs credentials of its client, which this gateway keeps nowhere: send the header that error.data.header names with every request.',
  },
  claim_missing: {
    status: 403,
    code: -32000,
    message:
      'The MCP server needs to know more of its client: the claim that error.data.claim names is missing in its token, or cannot be used.',
  },
  origin_not_allowed: {
    status: 403,
    code: -32000,
    message: 'This Origin is not allowed. The operator can allow it with --allow-origin.',
  },
  bad_host: {
    status: 400,
    code: -32000,
    message: 'Bad request: Host must be a name or address, with or without a port.',
  },
  host_not_allowed: {
    status: 403,
    code: -32000,
    message: 'This Host is not allowed. The operator can allow it with --allow-host.',
  },
  unsupported_version: {
    status: 400,
    code: -32000,
    message: `Bad request: MCP-Protocol-Version names a revision that is not served here. Served are ${[...legacyRevisions, ...modernRevisions].join(', ')}.`,
  },
  modern_not_served: {
    status: 400,
    code: -32022,
    message: notServedSentence,
    explain: withVersions(notServedSentence),
  },
  bad_envelope: {
    status: 400,
    code: -32602,
    message:
      'Invalid params: a request of this protocol version must have its version and the client capabilities in params._meta.',
  },
  header_mismatch: {
    status: 400,
    code: -32020,
    message: 'Header mismatch: a header that mirrors the body is missing, or does not say what the body says.',
    explain: explainHeader,
  },
  missing_capability: {
    status: 400,
    code: -32021,
    reached: 'maybe',
    message:
      'Missing required client capability: the MCP server asks for something that the client did not declare with this request.',
  },
  version_not_served: {
    status: 400,
    code: -32022,
    message: otherVersionSentence,
    explain: withVersions(otherVersionSentence),
  },
  method_removed: {
    status: 404,
    code: -32601,
    message: 'Method not found: this protocol version has no such method any more.',
  },
  modern_batch: {
    status: 400,
    code: -32600,
    message:
      'Invalid request: a request of this protocol version must be alone in its POST, without an array around it.',
  },
  modern_response: {
    status: 400,
    code: -32600,
    message: 'Invalid request: in this protocol version a client answers no requests. Send the input with a retry.',
  },
  post_only: {
    status: 405,
    code: -32000,
    message: 'Method not allowed: this protocol version has POST only.',
    allow: 'POST',
  },
  sessionless_post_only: {
    status: 405,
    code: -32000,
    message: 'Method not allowed: without Mcp-Session-Id there is POST only. Send initialize to get a session.',
    allow: 'POST',
  },
  bad_http: { status: 400, code: -32000, message: 'Bad request: what was sent is not HTTP/1.1.' },
  plain_http: {
    status: 400,
    code: -32000,
    message: 'Plain HTTP was sent to an HTTPS port. Use https:// in the URL.',
  },
  headers_too_large: {
    status: 431,
    code: -32000,
    message: 'The headers of this request are larger than this gateway accepts: 16 KiB in all.',
  },
  request_too_slow: {
    status: 408,
    code: -32000,
    message: 'The request did not arrive in time. Send its headers and its body without a break.',
  },
  bad_expectation: { status: 417, code: -32000, message: 'Expect may only be 100-continue.' },
  bad_target: { status: 400, code: -32000, message: 'Bad request: the request target must be a path.' },
  method_not_allowed: {
    status: 405,
    code: -32000,
    message: 'Method not allowed: use POST, GET or DELETE.',
    allow: 'POST, GET, DELETE',
  },
  wrong_method: {
    status: 405,
    code: -32000,
    message: 'Method not allowed: the header Allow names the methods of this path.',
  },
  only_a_stream: {
    status: 405,
    code: -32000,
    message:
      'Method not allowed: this is the event stream of HTTP+SSE (2024-11-05), opened by GET. Streamable HTTP has an endpoint of its own.',
    allow: 'GET',
  },
  only_messages: {
    status: 405,
    code: -32000,
    message: 'Method not allowed: HTTP+SSE (2024-11-05) clients POST their messages here.',
    allow: 'POST',
  },
  no_such_path: {
    status: 404,
    code: -32000,
    message:
      'There is no MCP endpoint at this path. The gateway prints its endpoints when it starts; a server that was taken out of its configuration has none any more.',
  },
  no_such_admin_path: {
    status: 404,
    code: -32000,
    message:
      'There is nothing at this path. The port for operators has the status page at /, and /metrics, /healthz and /readyz; MCP endpoints are at the port for clients.',
  },

  // Who sends it
  credentials_required: {
    status: 401,
    code: -32000,
    message: 'Unauthorized: send Authorization: Bearer with a key or token of this gateway with every request.',
  },
  credentials_invalid: {
    status: 401,
    code: -32000,
    message: 'Unauthorized: the credentials of this request are not valid here, or are no more.',
  },
  credentials_in_query: {
    status: 401,
    code: -32000,
    message: 'Unauthorized: credentials in a URL are not accepted. Send them as Authorization: Bearer.',
  },
  untrusted_proxy: {
    status: 403,
    code: -32000,
    message:
      'Forbidden: a header of this request says who its user is, and it does not come from a proxy that may say so.',
  },
  credentials_expired: {
    status: 403,
    code: -32000,
    reached: 'maybe',
    message:
      'The credentials of this request ended before it was answered; whether it took effect is unknown. Go on with new ones.',
  },
  token_not_checked: {
    status: 503,
    code: -32000,
    message:
      'The token could not be checked, because its issuer cannot be reached at the moment. Try again with the same one.',
    retryAfterS: 10,
  },
  insufficient_scope: {
    status: 403,
    code: -32000,
    message:
      'Forbidden: this needs a token with more scopes. WWW-Authenticate, or error.data.scope, names all of them.',
  },

  // What a principal may have in use
  quota_sessions: {
    status: 429,
    code: -32000,
    message: 'You have as many sessions open here as you may. End one of them, or try again later.',
    retryAfterS: 10,
  },
  quota_processes: {
    status: 429,
    code: -32000,
    message: 'As many server processes run for you as may. End a session, or try again later.',
    retryAfterS: 10,
  },
  quota_starts: {
    status: 429,
    code: -32000,
    message:
      'Too many server processes were started for you lately. Try again later, and keep sessions open for longer.',
    retryAfterS: 10,
  },
  quota_streams: {
    status: 429,
    code: -32000,
    message: 'You have as many streams and unanswered requests open here as you may. Close one, or wait for an answer.',
    retryAfterS: 1,
  },
  quota_requests: {
    status: 429,
    code: -32000,
    message: 'You send more requests than you may. Nothing of this one reached the server; wait before the next.',
    retryAfterS: 1,
  },
  quota_bytes: {
    status: 429,
    code: -32000,
    message: 'Your unanswered requests hold as many bytes as they may. Wait for answers before sending more.',
    retryAfterS: 1,
  },

  // WebSocket
  websocket_required: {
    status: 426,
    code: -32000,
    message:
      'Upgrade required: this path is for WebSocket. Connect to it with ws:// or wss:// and the subprotocol mcp.',
  },
  bad_handshake: {
    status: 400,
    code: -32000,
    message: 'Bad request: a WebSocket handshake is a GET with Sec-WebSocket-Key and Sec-WebSocket-Version: 13.',
  },
  subprotocol_required: {
    status: 400,
    code: -32000,
    message: 'Bad request: mcp is the only WebSocket subprotocol here. Offer it, or none.',
  },
  not_initialized: {
    status: 400,
    code: -32600,
    message: 'Invalid request: send initialize first on this connection, and the rest after its answer.',
  },
  not_text: { status: 415, code: -32000, message: 'Only text frames are accepted, each with one JSON text.' },
  initialize_timeout: { status: 408, code: -32000, message: 'The connection was not initialized in time.' },
  client_silent: {
    status: 408,
    code: -32000,
    reached: 'maybe',
    message: 'The client sent nothing and answered no ping.',
  },
  slow_reader: {
    status: 408,
    code: -32000,
    reached: 'maybe',
    message: 'The client did not read what was sent to it in time.',
  },

  // The session
  session_required: {
    status: 400,
    code: -32000,
    message:
      'Bad request: send initialize first, then its Mcp-Session-Id with each message. A request of 2026-07-28 has params._meta instead; one that needs no session is served with --sessionless serve.',
  },
  bad_session_id: { status: 400, code: -32000, message: 'Bad request: Mcp-Session-Id is malformed.' },
  unknown_session: {
    status: 404,
    code: -32001,
    message: 'Session not found: it has ended or never existed. Start a new one with initialize.',
  },
  unknown_token: {
    status: 404,
    code: -32001,
    message:
      'No session has this endpoint token. Open the event stream, send initialize to the endpoint that it names, and then the rest.',
  },
  used_token: {
    status: 400,
    code: -32600,
    message:
      'Invalid request: initialize was sent to this endpoint before. Open another event stream for another session.',
  },
  already_initialized: {
    status: 400,
    code: -32600,
    message: 'Invalid request: this session is already initialized. Send initialize without Mcp-Session-Id.',
  },
  bad_event_id: {
    status: 400,
    code: -32000,
    message: 'Bad request: Last-Event-ID is not an event id of this gateway.',
  },
  unknown_event_id: {
    status: 404,
    code: -32001,
    message: 'Last-Event-ID names no stream of this session.',
  },
  history_lost: {
    status: 200,
    code: -32000,
    reached: 'maybe',
    message: 'The events of this stream from Last-Event-ID on are no longer kept, so its answer cannot be collected.',
  },

  // The server behind the gateway
  initialize_too_large: {
    status: 400,
    code: -32600,
    message:
      'Invalid request: initialize has more than 64 KiB, or what a request says of its client for it. Say less in clientInfo and capabilities.',
  },
  handshake_too_large: {
    status: 502,
    code: -32000,
    message:
      'The MCP server answered initialize with more than 1 MiB, or with a version or capabilities of a size that nobody reads. Mend the server.',
  },
  server_start_failed: {
    status: 502,
    code: -32000,
    message:
      "The MCP server could not be started. The gateway's log has the reason, and mcp-gangway check shows it too.",
    retryAfterS: 5,
  },
  server_start_timeout: {
    status: 504,
    code: -32000,
    message:
      "The MCP server did not answer initialize or server/discover in time. mcp-gangway check shows what it writes, as does the gateway's log at level debug.",
    retryAfterS: 5,
  },
  server_exited: {
    status: 502,
    code: -32000,
    reached: 'maybe',
    message: 'The MCP server ended before it answered; whether the request took effect is unknown.',
  },
  server_refused: {
    status: 502,
    code: -32000,
    reached: 'maybe',
    message: 'The MCP server refused the POST of this request, or ended it without an answer: there will be none.',
  },
  // Not 401: that would have clients look for credentials for the gateway.
  server_unauthorized: {
    status: 502,
    code: -32000,
    reached: 'maybe',
    message:
      'The MCP server refused access (401 or 403). Its operator gives it credentials with --header, or has each client send its own with --forward-header.',
  },
  server_unreachable: {
    status: 502,
    code: -32000,
    reached: 'maybe',
    message:
      'The connection to the MCP server failed while this request was sent or answered; whether it took effect is unknown.',
  },
  server_silent: {
    status: 504,
    code: -32000,
    reached: 'maybe',
    message:
      'The MCP server said nothing for too long while it answered this request; whether it took effect is unknown.',
  },
  server_busy: {
    status: 503,
    code: -32000,
    message: 'The MCP server does not read its input fast enough. Nothing of this request reached it.',
    retryAfterS: 1,
  },
  group_busy: {
    status: 503,
    code: -32000,
    message:
      'All processes of the server that may serve the request wait for the input of other ones. Try again, or have the gateway use more of them.',
    retryAfterS: 2,
  },
  server_not_modern: {
    status: 502,
    code: -32000,
    message: 'The MCP server did not answer server/discover as one that serves this protocol version does.',
    retryAfterS: 5,
  },
  server_crash_loop: {
    status: 503,
    code: -32000,
    message: 'The MCP server ended again and again. The gateway starts it once more after a pause.',
    retryAfterS: 30,
  },
  server_full: {
    status: 503,
    code: -32000,
    message: 'As many requests are in flight at this MCP server as may be. Nothing of this request reached it.',
    retryAfterS: 1,
  },
  line_too_long: {
    status: 502,
    code: -32000,
    reached: 'maybe',
    message: 'The MCP server wrote a line longer than the limit, so its answer was lost.',
  },
  memory_limit: {
    status: 502,
    code: -32000,
    reached: 'maybe',
    message: 'The MCP server used more memory than it may and was ended; whether the request took effect is unknown.',
  },
  event_too_large: {
    status: 502,
    code: -32000,
    reached: 'maybe',
    message: 'The answer is larger than an event may be. Ask for it with Accept: application/json.',
  },
  response_too_complex: {
    status: 502,
    code: -32000,
    reached: 'maybe',
    message:
      'The answer of the MCP server was not read: it has more than 1,048,576 values in over 8 MiB, twice as many escapes, 1,000 levels or 8,192 own members. Ask for less at once, or in pages.',
  },
  server_request_refused: {
    status: 502,
    code: -32000,
    reached: 'maybe',
    message:
      'The gateway cannot pass this request on: it is too large, too many are unanswered, or no client can be asked for it.',
  },
  request_timeout: {
    status: 504,
    code: -32000,
    reached: 'maybe',
    message: 'The MCP server did not answer in time and was told to stop. Whether the request took effect is unknown.',
  },
  too_many_calls: {
    status: 429,
    code: -32000,
    message: 'Too many requests of this session are in flight. Wait for answers before sending more.',
    retryAfterS: 1,
  },
  cancelled: { status: 200, code: -32000, reached: 'maybe', message: 'The request was cancelled by the client.' },

  // A server of another era than its client
  bad_request_state: {
    status: 400,
    code: -32602,
    message:
      'Invalid params: requestState is of another gateway, request or client, of before a restart, used with other answers, or expired. Send the newest one, or the request without it.',
  },
  no_server_requests: {
    status: 404,
    code: -32601,
    message:
      'Method not found: in this protocol version servers send no requests. Ask for input with a result of type input_required.',
  },
  unknown_task: {
    status: 200,
    code: -32602,
    message:
      'Invalid params: there is no such task. It is over and forgotten, was lost with its server, or never existed.',
  },
  method_of_other_era: {
    status: 200,
    code: -32601,
    message:
      'Method not found: the MCP server is of the modern era, and this method is not translated between the eras.',
  },
  bad_log_level: {
    status: 200,
    code: -32602,
    message: 'Invalid params: level must be debug, info, notice, warning, error, critical, alert or emergency.',
  },
  bad_filter: {
    status: 200,
    code: -32602,
    message: 'Invalid params: notifications must be an object that says what to listen to.',
  },
  bad_uri: { status: 200, code: -32602, message: 'Invalid params: uri must be the URI of a resource.' },
  subscription_refused: {
    status: 200,
    code: -32602,
    message: 'The MCP server does not tell of changes of this resource.',
  },
  too_many_subscriptions: {
    status: 429,
    code: -32000,
    message: 'This session is subscribed to as many resources as it may be. Unsubscribe from some first.',
  },
  filter_too_large: {
    status: 400,
    code: -32602,
    message:
      'Invalid params: one subscription names more than 500 resources, or URIs of more than 256 KiB. Open several subscriptions.',
  },
  input_refused: {
    status: 200,
    code: -32000,
    reached: 'maybe',
    message:
      'The MCP server needed input that could not be had: the client answered with an error, or could not be asked.',
  },
  input_too_large: {
    status: 413,
    code: -32000,
    reached: 'maybe',
    message: 'The answers to what the MCP server needed to know are larger than this gateway can hold.',
  },
  too_many_rounds: {
    status: 502,
    code: -32000,
    reached: 'maybe',
    message: 'The MCP server asked for input again and again, so that its request was given up.',
  },
  unserved_result: {
    status: 502,
    code: -32000,
    reached: 'maybe',
    message: 'The MCP server answered with a result that its protocol version does not have for this request.',
  },
  session_ended: {
    status: 404,
    code: -32001,
    reached: 'maybe',
    message:
      'The session of this request has ended before its answer was had; whether the request took effect is unknown. Start a new session with initialize.',
  },

  // Several instances
  outcome_unknown: {
    status: 502,
    code: -32000,
    reached: 'maybe',
    message:
      'The gateway instance that ran the request stopped, was lost or was cut off before its answer was had; whether it took effect is unknown.',
  },
  store_unavailable: {
    status: 503,
    code: -32000,
    message: 'The gateway cannot reach its store at the moment. Nothing of this request reached the server; try again.',
    retryAfterS: 2,
  },
  input_not_taken: {
    status: 503,
    code: -32000,
    reached: 'maybe',
    message:
      'The gateway cannot reach its store at the moment, so these answers did not reach the server. Its request goes on waiting for them: send them again with the same requestState.',
    retryAfterS: 2,
  },
  owner_busy: {
    status: 503,
    code: -32000,
    message:
      'The gateway instance that holds this session does not keep up. Nothing of this request reached the server.',
    retryAfterS: 1,
  },
  takeover_paused: {
    status: 503,
    code: -32000,
    message:
      'The gateway instances that held this session were lost again and again, so the next one waits before it takes over. Try again.',
    retryAfterS: 10,
  },
  other_configuration: {
    status: 503,
    code: -32000,
    message:
      'The session belongs to instances with another configuration of this server or another version. Try again, or start a new session.',
    retryAfterS: 2,
  },
  server_reconfigured: {
    status: 503,
    code: -32000,
    message: 'The configuration of this server has just been changed, or it was taken out. Try again.',
    retryAfterS: 1,
  },

  // The gateway
  too_many_sessions: {
    status: 503,
    code: -32000,
    message: 'This gateway holds as many sessions as it may. Try again later.',
    retryAfterS: 10,
  },
  too_many_starts: {
    status: 503,
    code: -32000,
    message: 'Too many server processes were started here lately. Try again later.',
    retryAfterS: 10,
  },
  gateway_busy: {
    status: 503,
    code: -32000,
    message: 'This gateway has as much to do as it may. Nothing of this request reached the server; try again.',
    retryAfterS: 1,
  },
  draining: {
    status: 503,
    code: -32000,
    message: 'This gateway is shutting down. Try again; another instance or the next start will answer.',
    retryAfterS: 5,
  },
  instances_differ: {
    status: 503,
    code: -32000,
    message:
      'The instances of this gateway run versions that do not understand each other. Nothing of this request reached the server; try again.',
    retryAfterS: 2,
  },
  internal: {
    status: 500,
    code: -32603,
    reached: 'maybe',
    message: "Internal error. The gateway's log has the details.",
  },
} as const satisfies Record<string, CatalogueEntry>;

/** The reasons of the catalogue; each appears as `error.data.reason`. */
export type Reason = keyof typeof catalogue;

/** A JSON-RPC request id as the protocol allows it. */
export type RequestId = string | number;

/** The catalogue's entry for a reason. */
export const entryOf = (reason: Reason): CatalogueEntry => catalogue[reason];

/** True if an answer with this reason promises that the request has not reached the server. */
export const deniesReaching = (reason: Reason): boolean => entryOf(reason).reached === undefined;

/**
 * The code of the gateway's own errors in the modern era, whatever their reason: it lies outside of what JSON-RPC and the
 * specification keep for themselves (2026-07-28, basic, "Error Codes").
 */
export const gatewayErrorCode = -31000;

/** The JSON-RPC code of a reason for a client of this era. */
export function codeOf(reason: Reason, era: Era): number {
  const { code } = entryOf(reason);
  return era === 'modern' && code <= -32000 && code > -32020 ? gatewayErrorCode : code;
}

/** Every reason, for tests and for the generated documentation. */
export const allReasons = Object.keys(catalogue) as Reason[];

/**
 * A JSON-RPC error response for a reason, as JSON text.
 * @param id the request's own id, or `null` if it could not be read (JSON-RPC 2.0, section 5)
 * @param data further members of `error.data` beside `reason`
 * @param era what the client speaks
 */
export function faultMessage(
  reason: Reason,
  id: RequestId | null,
  data: Record<string, unknown> = {},
  era: Era = 'legacy',
): string {
  const { message, explain } = entryOf(reason);
  const said = explain?.(data) ?? message;
  return JSON.stringify({
    jsonrpc: '2.0',
    id,
    error: { code: codeOf(reason, era), message: said, data: { reason, ...data } },
  });
}

/** True for a reason of the catalogue. */
export const isReason = (value: unknown): value is Reason =>
  typeof value === 'string' && Object.hasOwn(catalogue, value);
