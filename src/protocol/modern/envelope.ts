import type { RequestId } from '../faults.ts';
import { type Message, memberRange, memberValue, protocolVersionKey } from '../message/message.ts';
import { type LogLevel, readLogLevel } from './log-levels.ts';

/** What a request of the modern era says of itself in `params._meta` (2026-07-28, basic, "Per-request protocol fields"). */
export interface Envelope {
  readonly protocolVersion: string;
  /** The least level of log messages that the client wants of this request; undefined if it wants none. */
  readonly logLevel: LogLevel | undefined;
}

/** An envelope, or the keys that a request must have and has not, or has with a value of another kind. */
export type ReadEnvelope =
  | { readonly ok: true; readonly envelope: Envelope }
  | { readonly ok: false; readonly missing: readonly string[] };

export const clientCapabilitiesKey = 'io.modelcontextprotocol/clientCapabilities';
export const clientInfoKey = 'io.modelcontextprotocol/clientInfo';
export const logLevelKey = 'io.modelcontextprotocol/logLevel';

const openBrace = 0x7b;

/** Reads the envelope of a request. `clientInfo` is not asked for: a client may keep it to itself. */
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

/** What a client says of itself in more bytes is not passed on in `initialize`, which is kept as long as its session (P8). */
const maxInfoBytes = 4 * 1024;

/**
 * What a client calls itself, as JSON text for `initialize`, which asks for a name and a version; undefined if it does not say,
 * or not so.
 */
export function readClientInfo(request: Message): string | undefined {
  const place = memberRange(request, 'meta', clientInfoKey);
  if (place === undefined || place.end - place.start > maxInfoBytes) return undefined;
  const text = request.text.toString('utf8', place.start, place.end);
  const info = JSON.parse(text) as { readonly name?: unknown; readonly version?: unknown } | null;
  return typeof info?.name === 'string' && typeof info.version === 'string' ? text : undefined;
}

/** A request of the gateway's own to a modern server. */
export function ownRequest(
  id: RequestId,
  method: string,
  params: Readonly<Record<string, unknown>>,
  { version, protocolVersion }: { readonly version: string; readonly protocolVersion: string },
): Buffer {
  const _meta = {
    [protocolVersionKey]: protocolVersion,
    [clientInfoKey]: { name: 'mcp-gangway', version },
    [clientCapabilitiesKey]: {},
  };
  return Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, method, params: { ...params, _meta } }));
}
