import { KnownByClient } from '../../../core/backend/known-items.ts';
import { MirroredParameters } from '../../../core/backend/mirrored-parameters.ts';
import { type ForwardedHeaders, readForwardedCredentials } from '../../../core/protocol/http/forwarded-headers.ts';
import { nextOwnId } from '../../../core/protocol/ids/own-ids.ts';
import { errorCodeIn } from '../../../core/protocol/json.ts';
import { changedMessage } from '../../../core/protocol/message/changed-message.ts';
import { createFaultResponse } from '../../../core/protocol/message/gateway-fault.ts';
import { type Message, memberValue } from '../../../core/protocol/message/message.ts';
import { revisionToRetry } from '../../../core/protocol/modern/discovery.ts';
import { ownRequest, revisionOf } from '../../../core/protocol/modern/envelope.ts';
import { mirroredHeaders } from '../../../core/protocol/modern/mirrored-headers.ts';
import { offeredTools } from '../../../core/protocol/modern/offered-tools.ts';
import { paramHeadersOf } from '../../../core/protocol/modern/param-headers.ts';
import { modernErrorCodes } from '../../../core/protocol/revisions.ts';
import { TimeLimit } from '../../../core/util/timing/time-limit.ts';
import { Canceller } from '../http-client/canceller.ts';
import {
  type ModernPostOutcome,
  type ModernRequestPost,
  postModernRequest,
  type StatelessServer,
} from './modern-post.ts';
import { keepSubscription } from './subscription-stream.ts';

/** A request of a client, and its callbacks. */
export type ModernClientRequest = Pick<
  ModernRequestPost,
  'canceller' | 'waitsForServer' | 'onAccepted' | 'onNotifications' | 'onNoise'
> & {
  readonly request: Message;
  /** Headers of the client request that carried it. */
  readonly forwarded: ForwardedHeaders;
};

/** Sends requests to a server and fulfils the duties of a client of the modern era. */
export interface ModernRequester {
  /** Never rejects. */
  request(requested: ModernClientRequest): Promise<ModernPostOutcome>;
  /** Requests the server's revisions, as a request of the gateway's own. Never rejects. */
  discover(forwarded: ForwardedHeaders): Promise<ModernPostOutcome>;
}

/** Options of the requester. */
export interface ModernRequesterOptions extends StatelessServer {
  /** The gateway's own version. */
  readonly version: string;
  /** Tools were left out of a list because their mirrored parameters break the rules. */
  onToolsHidden(names: readonly string[]): void;
}

/** How long the server may take to answer a request of the gateway's own. */
const ownTimeoutMs = 10_000;

/**
 * Creates a requester (2026-07-28, basic/transports/streamable-http, "Request Metadata"):
 * - Each request has the headers that mirror its body, including those for the parameters of a tool.
 * - After a header mismatch the tool list is read again, and the call is repeated once if it needs other headers.
 * - Tools that break the rules are not offered.
 */
export function createModernRequester({ version, onToolsHidden, ...parts }: ModernRequesterOptions): ModernRequester {
  /** The revision of the gateway's own requests: the newest until the server has refused it. */
  let protocolVersion: string | undefined;

  const sendOwnRequest = async (
    method: string,
    params: object,
    forwarded: ForwardedHeaders,
    isRepeat = false,
  ): Promise<ModernPostOutcome> => {
    const request = ownRequest(nextOwnId(), method, { ...params }, { version, protocolVersion });
    const canceller = new Canceller();
    const limit = new TimeLimit(() => canceller.abort(), ownTimeoutMs);
    const ignore = (): void => undefined;
    const own = { canceller, waitsForServer: false, onAccepted: ignore, onNotifications: ignore, onNoise: ignore };
    const outcome = await postModernRequest({ ...own, ...createPost(request, forwarded) }, parts);
    limit.clear();
    const other = outcome.ok && !isRepeat ? revisionToRetry(outcome.response) : undefined;
    if (other === undefined) return outcome;
    protocolVersion = other;
    return sendOwnRequest(method, params, forwarded, true);
  };

  const list = async (cursor: string | undefined, forwarded: ForwardedHeaders): Promise<Buffer | undefined> => {
    const outcome = await sendOwnRequest('tools/list', cursor === undefined ? {} : { cursor }, forwarded);
    return outcome.ok ? outcome.response.text : undefined;
  };
  const tools = new KnownByClient(readForwardedCredentials, () => new MirroredParameters(list));

  /** Adds the headers for mirrored parameters, from known tools or from a new list. */
  const withParams = async (
    post: ModernRequestPost,
    { request, forwarded }: ModernClientRequest,
    by: 'find' | 'findAnew',
  ) => {
    const tool = memberValue(request, 'params', 'name');
    if (typeof tool !== 'string') return post;
    const params = await tools.of(forwarded)[by](tool, forwarded);
    return params === undefined ? post : { ...post, headers: { ...post.headers, ...paramHeadersOf(params, request) } };
  };

  const call = async (post: ModernRequestPost, requested: ModernClientRequest): Promise<ModernPostOutcome> => {
    const mirrored = await withParams(post, requested, 'find');
    const outcome = await postModernRequest(mirrored, parts);
    if (!isHeaderMismatch(outcome) || requested.canceller.aborted) return outcome;
    const renewed = await withParams(post, requested, 'findAnew');
    return hasSameHeaders(renewed, mirrored) ? outcome : postModernRequest(renewed, parts);
  };

  const passList = async (post: ModernRequestPost, { forwarded }: ModernClientRequest): Promise<ModernPostOutcome> => {
    const outcome = await postModernRequest(post, parts);
    if (!outcome.ok) return outcome;
    tools.of(forwarded).learn(outcome.response.text);
    const offered = await offeredTools(outcome.response.text);
    if (offered === 'unreadable')
      return { ...outcome, response: createFaultResponse('list_unreadable', outcome.response.id ?? null) };
    const { text, hidden } = offered;
    if (hidden.length > 0) onToolsHidden(hidden);
    return hidden.length === 0 ? outcome : { ...outcome, response: changedMessage(outcome.response, text, {}) };
  };

  return {
    request(requested) {
      const { request, forwarded, ...callbacks } = requested;
      const post: ModernRequestPost = { ...callbacks, ...createPost(request, forwarded) };
      if (request.method === 'tools/call') return call(post, requested);
      if (request.method === 'tools/list') return passList(post, requested);
      return request.method === 'subscriptions/listen' ? keepSubscription(post, parts) : postModernRequest(post, parts);
    },
    discover: (forwarded) => sendOwnRequest('server/discover', {}, forwarded),
  };
}

/** Returns the headers that every message has. No header of a client replaces one that mirrors the body. */
export function headersOf(message: Message, forwarded: ForwardedHeaders): Readonly<Record<string, string>> {
  // A notification need not name a revision, and an unknown text must not become a header.
  return { ...forwarded, ...mirroredHeaders(message, revisionOf(message)) };
}

const createPost = (
  request: Message,
  forwarded: ForwardedHeaders,
): Pick<ModernRequestPost, 'message' | 'headers' | 'forwarded'> => ({
  message: request,
  headers: headersOf(request, forwarded),
  forwarded,
});

function isHeaderMismatch(outcome: ModernPostOutcome): boolean {
  if (!outcome.ok || outcome.status !== 400) return false;
  return errorCodeIn(outcome.response.text) === modernErrorCodes.headerMismatch;
}

const hasSameHeaders = (one: ModernRequestPost, other: ModernRequestPost): boolean =>
  JSON.stringify(Object.entries(one.headers).sort()) === JSON.stringify(Object.entries(other.headers).sort());
