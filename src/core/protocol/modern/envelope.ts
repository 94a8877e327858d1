// src/core/protocol/modern: requests, responses and headers of the modern era (2026-07-28), without translation.

import { parseBounded } from '../json.ts';
import { findModern, newestModern } from '../known-revisions.ts';
import { createMessage, type Message, memberRange, memberValue, protocolVersionKey } from '../message/message.ts';
import type { Revision } from '../revisions.ts';
import { type LogLevel, readLogLevel } from './log-levels.ts';

/**
 * The description of a request of the modern era in its `params._meta` (2026-07-28, basic, "Per-request protocol
 * fields").
 */
export interface Envelope {
  readonly protocolVersion: string;
  /** The facts about that revision; undefined if the gateway does not serve it. */
  readonly revision: Revision | undefined;
  /** The least severe level of log messages that the client requests; undefined if it requests none. */
  readonly logLevel: LogLevel | undefined;
}

/** An envelope, or the required keys that are missing or have a value of a wrong type. */
export type ReadEnvelope =
  | { readonly ok: true; readonly envelope: Envelope }
  | { readonly ok: false; readonly missing: readonly string[] };

export const clientCapabilitiesKey = 'io.modelcontextprotocol/clientCapabilities';
export const clientInfoKey = 'io.modelcontextprotocol/clientInfo';
/** The key of `_meta` under which a server identifies itself (2026-07-28, server/discover). */
export const serverInfoKey = 'io.modelcontextprotocol/serverInfo';
export const logLevelKey = 'io.modelcontextprotocol/logLevel';

const openBrace = 0x7b;

/** Reads the envelope of a request. `clientInfo` is not required: a client may omit it. */
export function readEnvelope(request: Message): ReadEnvelope {
  const protocolVersion = memberValue(request, 'meta', protocolVersionKey);
  const revision = findModern(protocolVersion);
  const { requiredMeta } = revision ?? newestModern;
  const hasObject = (key: string): boolean => {
    const range = memberRange(request, 'meta', key);
    return range !== undefined && request.text[range.start] === openBrace;
  };
  if (typeof protocolVersion !== 'string' || !requiredMeta.every(hasObject)) {
    const missing = requiredMeta.filter((key) => !hasObject(key));
    return { ok: false, missing: typeof protocolVersion === 'string' ? missing : [protocolVersionKey, ...missing] };
  }
  const logLevel = readLogLevel(memberValue(request, 'meta', logLevelKey));
  return { ok: true, envelope: { protocolVersion, revision, logLevel } };
}

/** The facts about the revision that a request names; of the newest one if the gateway serves no such revision. */
export const revisionOf = (request: Message): Revision =>
  findModern(memberValue(request, 'meta', protocolVersionKey)) ?? newestModern;

/** A longer description of a client is not passed on in `initialize`, which is kept as long as its session (P8). */
const maxInfoBytes = 4 * 1024;

/**
 * Reads the client's name and version as JSON text for `initialize`, which requires both; undefined if either is
 * missing.
 */
export function readClientInfo(request: Message): string | undefined {
  const range = memberRange(request, 'meta', clientInfoKey);
  if (range === undefined || range.end - range.start > maxInfoBytes) return undefined;
  const text = request.text.toString('utf8', range.start, range.end);
  const info = parseBounded(text, maxInfoBytes) as { readonly name?: unknown; readonly version?: unknown } | null;
  return typeof info?.name === 'string' && typeof info.version === 'string' ? text : undefined;
}

/** A longer name of a client is truncated (P8). */
const maxClientName = 100;

/** The description of a client that was last read, and its name: many requests in a row have the same one. */
let latestClient: { readonly info: Buffer; readonly name: string | undefined } | undefined;

/**
 * Reads the name and version that the client of a request gives itself; undefined if it gives no name. The client
 * chooses both, so they prove nothing.
 */
export function readClientName(request: Message): string | undefined {
  const range = memberRange(request, 'meta', clientInfoKey);
  if (range === undefined || range.end - range.start > maxInfoBytes) return undefined;
  const info = request.text.subarray(range.start, range.end);
  if (latestClient?.info.equals(info) !== true) latestClient = { info: Buffer.from(info), name: nameIn(info) };
  return latestClient.name;
}

function nameIn(info: Buffer): string | undefined {
  const read = parseBounded(info, maxInfoBytes) as { readonly name?: unknown; readonly version?: unknown } | null;
  if (typeof read?.name !== 'string') return undefined;
  return (typeof read.version === 'string' ? `${read.name} ${read.version}` : read.name).slice(0, maxClientName);
}

/** The gateway as a client of the modern era. */
export interface OwnClient {
  /** The gateway's own version. */
  readonly version: string;
  /** The revision of its requests; the newest by default. */
  readonly protocolVersion?: string | undefined;
}

/** Creates a request of the gateway's own to a modern server. Its id is a number: some servers turn others into 0. */
export function ownRequest(
  id: number,
  method: string,
  params: Readonly<Record<string, unknown>>,
  { version, protocolVersion = newestModern.name }: OwnClient,
): Message {
  const _meta = {
    [protocolVersionKey]: protocolVersion,
    [clientInfoKey]: { name: 'mcp-gangway', version },
    [clientCapabilitiesKey]: {},
  };
  return createMessage({ id, method, params: { ...params, _meta } });
}

/** Creates the request whose answer shows that a server is of the modern era, and names its revisions. */
export const discoverRequest = (id: number, client: OwnClient): Message =>
  ownRequest(id, 'server/discover', {}, client);
