// src/core/protocol: MCP as pure functions on texts: messages, wire formats, translation between the eras, and faults.

import { batchRevisions, httpSse, legacyRevisions, modernEra, modernRevisions } from './known-revisions.ts';
import type { Era } from './revisions.ts';

/**
 * The catalogue of all errors that the gateway sends to clients. It has one entry per reason, with its HTTP status, its
 * JSON-RPC code and whether a retry can help. `http/http-context.ts` turns an entry into a response, and `session/` into an
 * event. `docs/reference/errors.md` is generated from the catalogue.
 *
 * Codes: JSON-RPC 2.0 defines -32700, -32600 and -32601. The official SDK's server sends -32000 and -32001 to legacy
 * clients. The specification (2026-07-28) defines -32020 to -32022 and reserves the rest of -32000 to -32099: see
 * `gatewayErrorCode`. Clients that distinguish cases read `error.data.reason`, which is the entry's key.
 */
interface CatalogueEntry {
  /** HTTP status, if the answer has not begun; within an open stream only the code is sent. */
  readonly status: number;
  /** JSON-RPC error code; in the modern era see `gatewayErrorCode`. */
  readonly code: number;
  /** The problem, its cause and the remedy, in at most 200 characters, without ids, paths or contents. */
  readonly message: string;
  /**
   * `maybe` if the request may have reached the server. Every other entry promises that no request except `initialize`
   * reached it, so that a client may send it again. Tests compare this promise with the calls that servers ran.
   */
  readonly reached?: 'maybe';
  /**
   * The message with details from `data`, since an SDK shows its users only the message. Undefined without details.
   * @param data only names and versions from the gateway's own lists
   */
  readonly explain?: (data: Readonly<Record<string, unknown>>) => string | undefined;
  /** Seconds after which the same request can succeed; absent if a retry does not help. */
  readonly retryAfterS?: number;
  /** The allowed methods, for a status 405 (RFC 9110, section 15.5.6). */
  readonly allow?: string;
}

/** Names the header (`data.header`) and says whether it is missing (`data.problem`). */
const explainHeader = ({ header, problem }: Readonly<Record<string, unknown>>): string | undefined => {
  if (typeof header !== 'string') return undefined;
  return `Header mismatch: ${header} ${problem === 'missing' ? 'is missing' : 'differs from the body'}.`;
};

/** Adds the revisions of `data.supported` to a sentence. */
const withVersions =
  (sentence: string) =>
  ({ supported }: Readonly<Record<string, unknown>>): string | undefined =>
    Array.isArray(supported) ? `${sentence} Supported: ${supported.join(', ')}.` : undefined;

/** Names the endpoints (`data.endpoints`) that anybody may know. */
const explainPath = ({ endpoints }: Readonly<Record<string, unknown>>): string | undefined => {
  if (!Array.isArray(endpoints) || endpoints.length === 0) return undefined;
  const named = endpoints.length === 1 ? 'The endpoint is' : 'The endpoints are';
  return `Not found: no MCP endpoint has this path. The server may have been removed. ${named} ${endpoints.join(', ')}.`;
};

const deniedSentence = "The operator's policy does not allow this request.";
const withheldSentence = "The MCP server has answered, but the operator's policy withholds the result.";

/** Adds the words of the policy (`data.why`) to a sentence. */
const withWhy =
  (sentence: string) =>
  ({ why }: Readonly<Record<string, unknown>>): string | undefined =>
    typeof why === 'string' ? `${sentence} ${why}` : undefined;

const notServedSentence =
  'This endpoint does not support this protocol version. Open a session: send initialize with a supported version.';
const otherVersionSentence = 'Unsupported protocol version. Send the request with a supported version.';

const catalogue = {
  // The body
  not_json: {
    status: 400,
    code: -32700,
    message: 'Parse error: the body is not valid UTF-8 JSON. Send one JSON value.',
  },
  not_json_rpc: {
    status: 400,
    code: -32600,
    message: 'Invalid request: the body is not a JSON-RPC 2.0 request, notification or response.',
  },
  bad_id: {
    status: 400,
    code: -32600,
    message:
      'Invalid request: the id is not allowed. Use a string of at most 256 characters or an integer between -(2^53-1) and 2^53-1.',
  },
  duplicate_key: {
    status: 400,
    code: -32600,
    message:
      "Invalid request: a key appears twice, or differs only in case from another key or from MCP's spelling. Write each key once, as MCP spells it.",
  },
  too_many_members: {
    status: 400,
    code: -32600,
    message: 'Invalid request: the message, its params or params._meta has more than 4096 members. Send fewer members.',
  },
  too_many_values: {
    status: 400,
    code: -32600,
    message:
      'Invalid request: the JSON is larger than 8 MiB and has more than 1,048,576 values or 2,097,152 escape sequences. Split the request into smaller ones.',
  },
  key_too_long: {
    status: 400,
    code: -32600,
    message:
      'Invalid request: a key of the message, its params or params._meta is longer than 4096 bytes, or the keys that are not ASCII are too many. Use shorter keys.',
  },
  too_deep: {
    status: 400,
    code: -32600,
    message: 'Invalid request: the JSON is nested too deeply. Use fewer levels.',
  },
  duplicate_id: {
    status: 400,
    code: -32600,
    message: 'Invalid request: two requests of the batch have the same id. Use different ids.',
  },
  batch_not_allowed: {
    status: 400,
    code: -32600,
    message: `Invalid request: only protocol revision ${batchRevisions} supports batches. Send one message per POST.`,
  },
  empty_batch: {
    status: 400,
    code: -32600,
    message: 'Invalid request: the batch is empty. Send at least one message.',
  },
  batch_too_large: {
    status: 400,
    code: -32600,
    message: 'Invalid request: the batch has too many messages. Split the batch into smaller ones.',
  },
  body_too_large: {
    status: 413,
    code: -32000,
    message:
      'The body is larger than this gateway accepts. Send a smaller body; the operator can raise the limit with --limits.request.body.',
  },
  encoded_body: {
    status: 415,
    code: -32000,
    message: 'Unsupported media type: Content-Encoding is not accepted. Send the body as plain JSON.',
  },

  // The headers
  bad_content_type: {
    status: 415,
    code: -32000,
    message:
      'Unsupported media type: the Content-Type is not JSON. Send the message with Content-Type: application/json.',
  },
  not_acceptable: {
    status: 406,
    code: -32000,
    message:
      'Not acceptable: this URL is for MCP clients, and the Accept header allows no type that the gateway can send. Use Accept: application/json, text/event-stream. A GET needs text/event-stream.',
  },
  duplicate_header: {
    status: 400,
    code: -32000,
    message:
      'Bad request: a header that may appear only once was sent twice, or its value has characters outside visible ASCII. Send the header once, with only visible ASCII characters.',
  },
  forwarded_too_large: {
    status: 431,
    code: -32000,
    message:
      'The headers that this gateway forwards to the MCP server are too large: more than 8 KiB in total. Send shorter values.',
  },
  access_token_required: {
    status: 403,
    code: -32000,
    message:
      "This MCP server needs an OAuth access token from the user, and accepts neither API keys nor proxy logins. Log in at the gateway's authorization server.",
  },
  credential_missing: {
    status: 400,
    code: -32000,
    message:
      "The MCP server needs the client's credentials, but a header is missing. With every request, send the header that error.data.header names.",
  },
  claim_missing: {
    status: 403,
    code: -32000,
    message:
      'The MCP server needs a claim that is missing from your token or has an unusable value. Get a token with the claim that error.data.claim names.',
  },
  origin_not_allowed: {
    status: 403,
    code: -32000,
    message:
      'Forbidden: requests from this Origin are not allowed. The operator can allow the origin with --allow-origin.',
  },
  bad_host: {
    status: 400,
    code: -32000,
    message: 'Bad request: the Host header is missing or malformed. Send a name or an address, with or without a port.',
  },
  host_not_allowed: {
    status: 403,
    code: -32000,
    message:
      'Forbidden: the name in the Host header is not allowed. Use a host name of this gateway in the URL. The operator can allow other names with --allow-host.',
  },
  unsupported_version: {
    status: 400,
    code: -32000,
    message: `Bad request: MCP-Protocol-Version names a revision that this gateway does not support. Supported: ${[...legacyRevisions, ...modernRevisions].join(', ')}.`,
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
      'Invalid params: params._meta lacks the protocol version or the client capabilities. This protocol version requires both members in every request.',
  },
  header_mismatch: {
    status: 400,
    code: -32020,
    message:
      'Header mismatch: a required header is missing, or its value differs from the body. Send the same value in the header and the body.',
    explain: explainHeader,
  },
  missing_capability: {
    status: 400,
    code: -32021,
    reached: 'maybe',
    message:
      'Missing required client capability: the MCP server needs a capability that the client did not declare. Declare the capability, or use another client.',
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
    message: 'Method not found: this protocol version no longer has this method.',
  },
  modern_batch: {
    status: 400,
    code: -32600,
    message:
      'Invalid request: this protocol version does not support batches. Send one request per POST, not an array.',
  },
  modern_response: {
    status: 400,
    code: -32600,
    message:
      'Invalid request: in this protocol version, clients do not send responses. To provide input, retry the request with inputResponses.',
  },
  post_only: {
    status: 405,
    code: -32000,
    message: 'Method not allowed: this protocol version uses only POST.',
    allow: 'POST',
  },
  sessionless_post_only: {
    status: 405,
    code: -32000,
    message: 'Method not allowed: without Mcp-Session-Id, only POST is allowed. Send initialize to get a session.',
    allow: 'POST',
  },
  bad_http: { status: 400, code: -32000, message: 'Bad request: the request is not valid HTTP/1.1.' },
  plain_http: {
    status: 400,
    code: -32000,
    message: 'Bad request: plain HTTP was sent to an HTTPS port. Use https:// in the URL.',
  },
  headers_too_large: {
    status: 431,
    code: -32000,
    message: 'The headers of this request are larger than 16 KiB in total. Send fewer or shorter headers.',
  },
  request_too_slow: {
    status: 408,
    code: -32000,
    message: 'The request did not arrive in time. Send the headers and the body without pauses.',
  },
  bad_expectation: {
    status: 417,
    code: -32000,
    message: 'Expectation failed: the Expect header has a value other than 100-continue. Remove the header.',
  },
  bad_target: {
    status: 400,
    code: -32000,
    message: 'Bad request: the request target is not a path. Send an absolute path, such as /mcp.',
  },
  method_not_allowed: {
    status: 405,
    code: -32000,
    message: 'Method not allowed: use POST, GET or DELETE.',
    allow: 'POST, GET, DELETE',
  },
  wrong_method: {
    status: 405,
    code: -32000,
    message: 'Method not allowed: the Allow header lists the methods of this path.',
  },
  only_a_stream: {
    status: 405,
    code: -32000,
    message: `Method not allowed: this path is the event stream of ${httpSse} and accepts only GET. For Streamable HTTP, use the other endpoint, by default /mcp.`,
    allow: 'GET',
  },
  only_messages: {
    status: 405,
    code: -32000,
    message: `Method not allowed: ${httpSse} clients send messages to this path. Use POST.`,
    allow: 'POST',
  },
  no_such_path: {
    status: 404,
    code: -32000,
    message:
      'Not found: no MCP endpoint has this path. With several servers, each has its own, such as /NAME/mcp. The server may have been removed. The gateway prints its endpoints when it starts.',
    explain: explainPath,
  },
  no_such_admin_path: {
    status: 404,
    code: -32000,
    message:
      'Not found: the operator port does not have this path. The operator port serves / (the status page), /metrics, /healthz and /readyz. MCP endpoints are on the client port.',
  },

  // The sender
  credentials_required: {
    status: 401,
    code: -32000,
    message:
      'Unauthorized: the request has no credentials. With every request, send a Bearer key or token for this gateway in the Authorization header.',
  },
  credentials_invalid: {
    status: 401,
    code: -32000,
    message:
      'Unauthorized: the key or token is not valid here. The credential was not issued for this endpoint, was revoked or has expired. Send a valid key or token.',
    explain: ({ error_description: cause }) =>
      typeof cause === 'string'
        ? `Unauthorized: ${cause.charAt(0).toLowerCase()}${cause.slice(1)}. Send a valid key or token.`
        : undefined,
  },
  credentials_in_query: {
    status: 401,
    code: -32000,
    message:
      'Unauthorized: credentials in the URL are not accepted. Send a Bearer key or token in the Authorization header.',
  },
  dpop_nonce_required: {
    status: 401,
    code: -32000,
    message:
      'Unauthorized: the DPoP proof lacks a current nonce. Send the request again with a new proof that contains the nonce in DPoP-Nonce.',
  },
  untrusted_proxy: {
    status: 403,
    code: -32000,
    message:
      'Forbidden: the request has a header that names its user, but does not come from a trusted proxy. The operator can add the proxy with --auth.proxy.addresses.',
  },
  credentials_expired: {
    status: 403,
    code: -32000,
    reached: 'maybe',
    message:
      'The credentials of this request expired before the answer arrived. Whether the request took effect is unknown. Continue with new credentials.',
  },
  token_not_checked: {
    status: 503,
    code: -32000,
    message: 'The token could not be verified because its issuer cannot be reached. Retry with the same token.',
    retryAfterS: 10,
  },
  insufficient_scope: {
    status: 403,
    code: -32000,
    message:
      'Forbidden: the token lacks scopes for this request. Get a token with all scopes that WWW-Authenticate or error.data.scope lists.',
  },

  // The policy of the operator
  policy_denied: {
    status: 403,
    code: -32000,
    message: deniedSentence,
    explain: withWhy(deniedSentence),
  },
  policy_withheld: {
    status: 403,
    code: -32000,
    reached: 'maybe',
    message: withheldSentence,
    explain: withWhy(withheldSentence),
  },
  policy_unavailable: {
    status: 503,
    code: -32000,
    message:
      "The operator's policy service did not answer as it should, so this request did not reach the MCP server. Retry later; the gateway's log has the cause.",
    retryAfterS: 5,
  },
  result_unchecked: {
    status: 502,
    code: -32000,
    reached: 'maybe',
    message:
      "The MCP server has answered, but the operator's policy service did not, so the result is withheld. Do not repeat a request that changes something.",
  },
  approval_impossible: {
    status: 403,
    code: -32000,
    message:
      "The operator's policy wants a person to approve this request, and this client cannot be asked. Use a client that supports form elicitation.",
  },
  result_expired: {
    status: 200,
    code: -32602,
    message:
      'Invalid params: the whole text of this result is not kept any more, or belongs to another user. Call the tool again, and ask for less.',
  },
  approval_declined: {
    status: 403,
    code: -32000,
    message: "The operator's policy wanted an approval of this request, and it was not approved.",
  },

  // The limits of a principal
  quota_sessions: {
    status: 429,
    code: -32000,
    message: 'You have reached your limit of open sessions. End a session or retry later.',
    retryAfterS: 10,
  },
  quota_processes: {
    status: 429,
    code: -32000,
    message: 'You have reached your limit of running server processes. End a session or retry later.',
    retryAfterS: 10,
  },
  quota_starts: {
    status: 429,
    code: -32000,
    message: 'You have reached your limit of server starts per minute. Retry later, and keep sessions open longer.',
    retryAfterS: 10,
  },
  quota_streams: {
    status: 429,
    code: -32000,
    message:
      'You have reached your limit of open streams and unanswered requests. Close a stream or wait for an answer.',
    retryAfterS: 1,
  },
  quota_requests: {
    status: 429,
    code: -32000,
    message:
      'You have reached your limit of requests per second. This request did not reach the MCP server. Wait before you retry.',
    retryAfterS: 1,
  },
  quota_bytes: {
    status: 429,
    code: -32000,
    message: 'You have reached your limit of bytes in unanswered requests. Wait for answers before you send more.',
    retryAfterS: 1,
  },

  // WebSocket
  websocket_required: {
    status: 426,
    code: -32000,
    message:
      'Upgrade required: this path accepts only WebSocket connections. Connect with ws:// or wss:// and the subprotocol mcp.',
  },
  bad_handshake: {
    status: 400,
    code: -32000,
    message:
      'Bad request: the WebSocket handshake is malformed. The handshake must be a GET with Sec-WebSocket-Key and Sec-WebSocket-Version: 13.',
  },
  subprotocol_required: {
    status: 400,
    code: -32000,
    message: 'Bad request: the only WebSocket subprotocol here is mcp. Offer mcp or no subprotocol.',
  },
  not_initialized: {
    status: 400,
    code: -32600,
    message: 'Invalid request: this connection is not initialized. Send initialize first and wait for its answer.',
  },
  not_text: {
    status: 415,
    code: -32000,
    message: 'Unsupported data: a binary frame was received. Send each message as JSON in one text frame.',
  },
  initialize_timeout: {
    status: 408,
    code: -32000,
    message:
      'The connection was closed because initialize did not arrive in time. Connect again and send initialize first.',
  },
  client_silent: {
    status: 408,
    code: -32000,
    reached: 'maybe',
    message: 'The connection was closed because the client sent nothing and did not answer pings.',
  },
  slow_reader: {
    status: 408,
    code: -32000,
    reached: 'maybe',
    message: 'The connection was closed because the client did not read messages fast enough.',
  },

  // The session
  session_required: {
    status: 400,
    code: -32000,
    message:
      'Bad request: Mcp-Session-Id is missing. Send initialize, then its Mcp-Session-Id with each message. The operator can allow requests without a session (--defaults.sessionless serve).',
  },
  unknown_session: {
    status: 404,
    code: -32001,
    message: 'Session not found: the session has ended or never existed. Start a new session with initialize.',
  },
  unknown_token: {
    status: 404,
    code: -32001,
    message:
      'Session not found: no session has this endpoint URL. Open the event stream again, and send initialize to the endpoint that the stream names.',
  },
  used_token: {
    status: 400,
    code: -32600,
    message:
      'Invalid request: initialize was already sent to this endpoint. Open another event stream to start another session.',
  },
  already_initialized: {
    status: 400,
    code: -32600,
    message:
      'Invalid request: this session is already initialized. For a new session, send initialize without Mcp-Session-Id.',
  },
  bad_event_id: {
    status: 400,
    code: -32000,
    message: 'Bad request: Last-Event-ID is not an event id of this gateway. Send the id of the last event unchanged.',
  },
  unknown_event_id: {
    status: 404,
    code: -32001,
    message:
      'Not found: Last-Event-ID does not belong to a stream of this session. Open a new stream without Last-Event-ID.',
  },
  history_lost: {
    status: 200,
    code: -32000,
    reached: 'maybe',
    message:
      'The events after Last-Event-ID are no longer stored, so the answer cannot be delivered. Whether the request took effect is unknown. Check its effect before you repeat it.',
  },

  // The server behind the gateway
  initialize_too_large: {
    status: 400,
    code: -32600,
    message:
      'Invalid request: initialize, or the client information in the request, is larger than 64 KiB. Shorten clientInfo and capabilities.',
  },
  handshake_too_large: {
    status: 502,
    code: -32000,
    message:
      "The MCP server's answer to initialize is too large: more than 1 MiB, or an oversized version or capabilities. The server's author must make the answer smaller.",
  },
  server_start_failed: {
    status: 502,
    code: -32000,
    message:
      "The MCP server could not be started. The gateway's log contains the reason. The operator can also run mcp-gangway check to see the reason.",
    retryAfterS: 5,
  },
  server_start_timeout: {
    status: 504,
    code: -32000,
    message:
      "The MCP server did not answer initialize or server/discover in time. To see the server's output, the operator can run mcp-gangway check or set --log-level debug.",
    retryAfterS: 5,
  },
  server_exited: {
    status: 502,
    code: -32000,
    reached: 'maybe',
    message:
      'The MCP server exited before it answered. Whether the request took effect is unknown. Check its effect before you repeat it.',
  },
  server_refused: {
    status: 502,
    code: -32000,
    reached: 'maybe',
    message:
      'The MCP server refused the HTTP request, or ended its HTTP response without an answer. No answer will follow.',
  },
  server_overloaded: {
    status: 503,
    code: -32000,
    message: 'The MCP server refused the HTTP request for now (429 or 503). The request was not run. Retry later.',
    explain: ({ retryAfterS }) =>
      typeof retryAfterS === 'number'
        ? `The MCP server refused the HTTP request for now (429 or 503). The request was not run. Retry after ${retryAfterS} s.`
        : undefined,
    retryAfterS: 10,
  },
  // A 401 would make clients look for credentials for the gateway.
  server_unauthorized: {
    status: 502,
    code: -32000,
    reached: 'maybe',
    message:
      'The MCP server refused access (401 or 403). The operator can set --defaults.auth upstream so that clients log in there, or set credentials with --header or --defaults.forwardHeaders.',
  },
  upstream_token_refused: {
    status: 502,
    code: -32000,
    message:
      "The authorization server refused to issue a token for the MCP server. This request did not reach the server. The gateway's log contains the reason; the operator can check --defaults.identity.",
  },
  upstream_token_unavailable: {
    status: 502,
    code: -32000,
    message:
      "The gateway could not get a token for the MCP server. This request did not reach the server. Retry later; the gateway's log contains the reason.",
    retryAfterS: 5,
  },
  // The same refusal, where clients authorize at the server themselves: WWW-Authenticate passes too.
  upstream_unauthorized: {
    status: 401,
    code: -32000,
    reached: 'maybe',
    message:
      'Unauthorized: the MCP server requires an access token, or did not accept this one. The header WWW-Authenticate of this answer says where to get one.',
  },
  upstream_forbidden: {
    status: 403,
    code: -32000,
    reached: 'maybe',
    message:
      'Forbidden: the access token does not allow this request to the MCP server. Get a token with the scopes in WWW-Authenticate.',
  },
  upstream_proof_refused: {
    status: 401,
    code: -32000,
    message:
      'Unauthorized: the gateway cannot pass on DPoP proofs to this MCP server. This request did not reach the server. Get a token without DPoP, and send it with Authorization: Bearer.',
  },
  upstream_requires_proof: {
    status: 502,
    code: -32000,
    message:
      'The MCP server accepts only tokens that are bound to a key (DPoP), and the gateway cannot pass on the proofs. Connect the client to the server directly.',
  },
  no_upstream_metadata: {
    status: 404,
    code: -32000,
    message: 'The MCP server has no OAuth metadata, and answers requests without a token.',
  },
  bad_upstream_metadata: {
    status: 502,
    code: -32000,
    message:
      "The MCP server's OAuth metadata cannot be used: it is not a JSON object, is too large, arrived too late, or is a redirect. The operator must correct the server.",
  },
  server_unreachable: {
    status: 502,
    code: -32000,
    reached: 'maybe',
    message:
      'The connection to the MCP server failed during this request. Whether the request took effect is unknown. Check its effect before you repeat it.',
  },
  server_busy: {
    status: 503,
    code: -32000,
    message: 'The MCP server does not read its input fast enough. This request did not reach the server. Retry.',
    retryAfterS: 1,
  },
  group_busy: {
    status: 503,
    code: -32000,
    message:
      'The process of this MCP server is in use by a request that waits for input, or too many requests wait for it. Retry; the operator can use --share user.',
    retryAfterS: 2,
  },
  server_not_modern: {
    status: 502,
    code: -32000,
    message: `The MCP server did not answer server/discover as protocol version ${modernEra} requires. The operator can run mcp-gangway check, or set --era.`,
    retryAfterS: 5,
  },
  server_crash_loop: {
    status: 503,
    code: -32000,
    message: 'The MCP server exited repeatedly. The gateway starts the server again after a pause. Retry later.',
    retryAfterS: 30,
  },
  server_full: {
    status: 503,
    code: -32000,
    message:
      'This MCP server has reached its limit of requests in flight or subscriptions. This request did not reach the server. Retry; the operator can raise --limits.session.requests.',
    retryAfterS: 1,
  },
  line_too_long: {
    status: 502,
    code: -32000,
    reached: 'maybe',
    message: 'The MCP server sent a message longer than 64 MiB, so its answer was lost. Ask for less at once.',
  },
  memory_limit: {
    status: 502,
    code: -32000,
    reached: 'maybe',
    message:
      'The MCP server was stopped because it used more memory than --defaults.process.memory allows. Whether the request took effect is unknown. Check its effect before you repeat it.',
  },
  event_too_large: {
    status: 502,
    code: -32000,
    reached: 'maybe',
    message:
      'The answer is too large to be kept for a client that lost its connection. The operator can raise --replay.maxSize, of which an event may take half.',
  },
  response_too_complex: {
    status: 502,
    code: -32000,
    reached: 'maybe',
    message:
      'The answer is too complex: over 1,000 levels, 8,192 top-level members, 512 KiB of an error, or 8 MiB with 1,048,576 values. Request less data, or use pagination.',
  },
  bad_response: {
    status: 502,
    code: -32000,
    reached: 'maybe',
    message:
      "The MCP server's answer is not a valid JSON-RPC 2.0 message. The request may have taken effect. The server's author must correct the answer.",
    explain: ({ problem }) =>
      typeof problem === 'string'
        ? `The MCP server's answer is not valid JSON-RPC: ${problem}. The request may have taken effect. The server's author must correct the answer.`
        : undefined,
  },
  server_request_refused: {
    status: 502,
    code: -32000,
    reached: 'maybe',
    message:
      'The gateway cannot forward this request to a client: the request is too large, too many requests are unanswered, or no client can answer it.',
  },
  request_timeout: {
    status: 504,
    code: -32000,
    reached: 'maybe',
    message:
      'The MCP server did not answer in time, and the request was cancelled. Whether the request took effect is unknown. The operator can raise --timeouts.requestIdle or --timeouts.requestTotal.',
  },
  too_many_calls: {
    status: 429,
    code: -32000,
    message: 'Too many requests of this session are in flight. Wait for answers before you send more.',
    retryAfterS: 1,
  },
  cancelled: { status: 200, code: -32000, reached: 'maybe', message: 'The client cancelled the request.' },

  // A server of a different era than its client
  bad_request_state: {
    status: 400,
    code: -32602,
    message:
      'Invalid params: requestState expired, is of another request, was used with other answers, or is of an instance with other state keys. Send the newest requestState, or the request without one.',
  },
  no_server_requests: {
    status: 404,
    code: -32601,
    message:
      'Method not found: in this protocol version, servers do not send requests. Return a result of type input_required to request input.',
  },
  unknown_task: {
    status: 200,
    code: -32602,
    message:
      'Invalid params: the task does not exist. The task has ended, was lost when its server exited, or never existed.',
  },
  method_of_other_era: {
    status: 200,
    code: -32601,
    message: `Method not found: the MCP server speaks protocol version ${modernEra}, and the gateway cannot translate this method for it.`,
  },
  bad_log_level: {
    status: 200,
    code: -32602,
    message: 'Invalid params: level must be debug, info, notice, warning, error, critical, alert or emergency.',
  },
  bad_filter: {
    status: 200,
    code: -32602,
    message:
      'Invalid params: notifications is missing or not an object. Send an object that lists the requested notifications.',
  },
  unknown_tool: {
    status: 200,
    code: -32602,
    message:
      'Invalid params: the tool does not exist. Get the names of the tools with tools/list, or with find_tools where the list has it.',
  },
  unknown_prompt: {
    status: 200,
    code: -32602,
    message: 'Invalid params: the prompt does not exist. Get the names of the prompts with prompts/list.',
  },
  bad_arguments: {
    status: 200,
    code: -32602,
    message: 'Invalid params: arguments must be an object in which each key appears once.',
  },
  tool_not_pinned: {
    status: 200,
    code: -32602,
    message:
      'The tool is new or its definition has changed since the operator reviewed it, so it cannot be called. Ask the operator to review the tool and to run mcp-gangway pin.',
  },
  list_unreadable: {
    status: 502,
    code: -32000,
    message:
      'The gateway filters or changes this list, but cannot read the list that the MCP server sent. The list is broken, has more than 10,000 items, or has too many values. Tell the operator.',
  },
  view_unavailable: {
    status: 503,
    code: -32000,
    message:
      'The MCP server behind this name is currently unavailable. The other servers of this endpoint are not affected.',
    retryAfterS: 5,
  },
  method_of_view: {
    status: 200,
    code: -32601,
    message: 'Method not found: this endpoint combines several MCP servers, and the method does not name one of them.',
  },
  bad_cursor: {
    status: 200,
    code: -32602,
    message: 'Invalid params: the cursor does not belong to this list. Request the list without a cursor.',
  },
  bad_uri: { status: 200, code: -32602, message: 'Invalid params: uri must be the URI of a resource.' },
  uri_too_long: {
    status: 400,
    code: -32602,
    message: 'Invalid params: the URI has more than 2,048 bytes. The gateway keeps no longer URIs of subscriptions.',
  },
  subscription_refused: {
    status: 200,
    code: -32602,
    message:
      'The MCP server does not send notifications about changes to this resource. Read the resource again to see a change.',
  },
  too_many_polls: {
    status: 429,
    code: -32000,
    message: 'You ask for the state of this task too often. Wait for the time in pollIntervalMs before you ask again.',
    retryAfterS: 1,
  },
  too_many_subscriptions: {
    status: 429,
    code: -32000,
    message: 'This session has reached its limit of resource subscriptions. Unsubscribe from some resources first.',
  },
  filter_too_large: {
    status: 400,
    code: -32602,
    message:
      'Invalid params: the subscription names more than 500 resources, more than 256 KiB of URIs, or a URI of more than 2,048 bytes. Split it into several.',
  },
  input_refused: {
    status: 200,
    code: -32000,
    reached: 'maybe',
    message:
      'The MCP server needed input that the client did not provide. The client returned an error, or does not support requests for input.',
  },
  input_too_large: {
    status: 413,
    code: -32000,
    reached: 'maybe',
    message: 'The input for the MCP server is larger than this gateway accepts. Send less data.',
  },
  too_many_rounds: {
    status: 502,
    code: -32000,
    reached: 'maybe',
    message: 'The MCP server requested input too many times, so the gateway ended the request.',
  },
  unserved_result: {
    status: 502,
    code: -32000,
    reached: 'maybe',
    message: 'The MCP server returned a result type that its protocol version does not allow for this request.',
  },
  session_ended: {
    status: 404,
    code: -32001,
    reached: 'maybe',
    message:
      'The session ended before this request was answered. Whether the request took effect is unknown. Start a new session with initialize.',
  },

  // Several instances
  outcome_unknown: {
    status: 502,
    code: -32000,
    reached: 'maybe',
    message:
      'The gateway instance that ran this request stopped or became unreachable before it answered. Whether the request took effect is unknown. Check its effect before you repeat it.',
  },
  store_unavailable: {
    status: 503,
    code: -32000,
    message: 'The gateway cannot reach its store. This request did not reach the MCP server. Retry.',
    retryAfterS: 2,
  },
  input_not_taken: {
    status: 503,
    code: -32000,
    reached: 'maybe',
    message:
      'The gateway cannot reach its store, so these answers did not reach the MCP server. The server still waits for the answers. Send the answers again with the same requestState.',
    retryAfterS: 2,
  },
  owner_unreachable: {
    status: 503,
    code: -32000,
    message:
      'The gateway instance that owns this session cannot be reached. This request did not reach the MCP server. Retry.',
    retryAfterS: 2,
  },
  takeover_paused: {
    status: 503,
    code: -32000,
    message:
      'The gateway instances that owned this session failed repeatedly, so the gateway waits before the next takeover. Retry later.',
    retryAfterS: 10,
  },
  other_configuration: {
    status: 503,
    code: -32000,
    message:
      'This session belongs to a gateway instance with a different version or server configuration. Retry, or start a new session.',
    retryAfterS: 2,
  },
  server_reconfigured: {
    status: 503,
    code: -32000,
    message: 'The configuration of this server has just changed, or the server was removed. Retry.',
    retryAfterS: 1,
  },

  // The gateway
  too_many_sessions: {
    status: 503,
    code: -32000,
    message: 'This gateway has reached its limit of sessions. Retry later; the operator can raise --max-sessions.',
    retryAfterS: 10,
  },
  too_many_starts: {
    status: 503,
    code: -32000,
    message:
      'This gateway has reached its limit of server starts per minute. Retry later; the operator can raise --limits.total.startsPerMinute.',
    retryAfterS: 10,
  },
  gateway_busy: {
    status: 503,
    code: -32000,
    message: 'This gateway is overloaded. This request did not reach the MCP server. Retry.',
    retryAfterS: 1,
  },
  draining: {
    status: 503,
    code: -32000,
    message: 'This gateway is shutting down. Retry: another instance or the restarted gateway will answer.',
    retryAfterS: 5,
  },
  instances_differ: {
    status: 503,
    code: -32000,
    message:
      'The instances of this gateway run incompatible versions, or have different secrets. This request did not reach the MCP server. Retry.',
    retryAfterS: 2,
  },
  internal: {
    status: 500,
    code: -32603,
    reached: 'maybe',
    message: "Internal error in the gateway. The gateway's log has the details.",
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
 * The reason for a call that has reached its server, when reading on with it is refused: what denies that it has reached
 * the server is true of the attempt alone.
 */
export const reasonOfRunning = (reason: Reason): Reason => (deniesReaching(reason) ? 'outcome_unknown' : reason);

/**
 * The code of the gateway's own errors in the modern era, whatever their reason. It lies outside of the ranges that
 * JSON-RPC and the specification reserve (2026-07-28, basic, "Error Codes").
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
 * Formats a JSON-RPC error response for a reason, as JSON text.
 * @param id the request's own id, or `null` if it could not be read (JSON-RPC 2.0, section 5)
 * @param data further members of `error.data` beside `reason`
 * @param era the era of the client
 */
export function faultMessage(
  reason: Reason,
  id: RequestId | null,
  data: Record<string, unknown> = {},
  era: Era = 'legacy',
): string {
  return JSON.stringify({
    jsonrpc: '2.0',
    id,
    error: { code: codeOf(reason, era), message: faultText(reason, data), data: { reason, ...data } },
  });
}

/** The message of a fault, for people. */
export function faultText(reason: Reason, data: Record<string, unknown> = {}): string {
  const { message, explain } = entryOf(reason);
  return explain?.(data) ?? message;
}

/** True for a reason of the catalogue. */
export const isReason = (value: unknown): value is Reason =>
  typeof value === 'string' && Object.hasOwn(catalogue, value);
