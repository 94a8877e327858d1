// src/protocol/modern: requests, responses and headers of the modern era (2026-07-28), without translation.

import type { RequestId } from '../faults.ts';
import { parseBounded } from '../json/scalar.ts';
import { createMessage, type Message, memberRange, memberValue, protocolVersionKey } from '../message/message.ts';
import { type LogLevel, readLogLevel } from './log-levels.ts';

/**
 * The description of a request of the modern era in its `params._meta` (2026-07-28, basic, "Per-request protocol
 * fields").
 */
export interface Envelope {
  readonly protocolVersion: string;
  /** The least severe level of log messages that the client requests; undefined if it requests none. */
  readonly logLevel: LogLevel | undefined;
}

/** An envelope, or the required keys that are missing or have a value of a wrong type. */
export type ReadEnvelope =
  | { readonly ok: true; readonly envelope: Envelope }
  | { readonly ok: false; readonly missing: readonly string[] };

export const clientCapabilitiesKey = 'io.modelcontextprotocol/clientCapabilities';
export const clientInfoKey = 'io.modelcontextprotocol/clientInfo';
export const logLevelKey = 'io.modelcontextprotocol/logLevel';

const openBrace = 0x7b;

/** Reads the envelope of a request. `clientInfo` is not required: a client may omit it. */
export function readEnvelope(request: Message): ReadEnvelope {
  const protocolVersion = memberValue(request, 'meta', protocolVersionKey);
  const capabilities = memberRange(request, 'meta', clientCapabilitiesKey);
  const hasCapabilities = capabilities !== undefined && request.text[capabilities.start] === openBrace;
  if (typeof protocolVersion !== 'string' || !hasCapabilities) {
    const missing = [
      ...(typeof protocolVersion === 'string' ? [] : [protocolVersionKey]),
      ...(hasCapabilities ? [] : [clientCapabilitiesKey]),
    ];
    return { ok: false, missing };
  }
  return { ok: true, envelope: { protocolVersion, logLevel: readLogLevel(memberValue(request, 'meta', logLevelKey)) } };
}

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

/** Creates a request of the gateway's own to a modern server. */
export function ownRequest(
  id: RequestId,
  method: string,
  params: Readonly<Record<string, unknown>>,
  { version, protocolVersion }: { readonly version: string; readonly protocolVersion: string },
): Message {
  const _meta = {
    [protocolVersionKey]: protocolVersion,
    [clientInfoKey]: { name: 'mcp-gangway', version },
    [clientCapabilitiesKey]: {},
  };
  return createMessage({ id, method, params: { ...params, _meta } });
}
