import type { Reason, RequestId } from './faults.ts';
import { type Members, memberRange, type ScannedValue, scanJson } from './json-scan.ts';

/**
 * A JSON-RPC 2.0 message as routing sees it: its text, and the few fields that say where it belongs. The text is what
 * was received and what is sent on (P1).
 */
export interface Message {
  readonly kind: 'request' | 'notification' | 'response';
  readonly text: Buffer;
  /** The id of a request or response; null for a response whose sender could not read the id. */
  readonly id: RequestId | null | undefined;
  readonly method: string | undefined;
  /** Of a request, where its progress is to be reported; of `notifications/progress`, what it reports on. */
  readonly progressToken: RequestId | undefined;
  /** The request that `notifications/cancelled` cancels. */
  readonly cancels: RequestId | undefined;
  /** The task that it belongs to: `params.taskId`, or the related task in `params._meta` (2025-11-25, basic/utilities/tasks). */
  readonly taskId: string | undefined;
  /** True if `params._meta` names a protocol version: a request of the modern era (2026-07-28, basic/versioning). */
  readonly isModern: boolean;
}

/** A message, or what is wrong with it and the id that its error answers. */
export type ReadMessage =
  | { readonly ok: true; readonly message: Message }
  | { readonly ok: false; readonly reason: Reason; readonly id: RequestId | null };

/** A body taken apart: one message, or those of a batch in order. */
export type ReadBody =
  | { readonly ok: true; readonly batch: boolean; readonly messages: readonly ReadMessage[] }
  | { readonly ok: false; readonly reason: Reason };

const maxIdLength = 256;
const protocolVersionKey = 'io.modelcontextprotocol/protocolVersion';
const relatedTaskKey = 'io.modelcontextprotocol/related-task';

/**
 * Reads one text as a JSON-RPC message or batch. Nothing is thrown for a peer's fault.
 * @param maxDepth how deeply the JSON may be nested
 */
export function readBody(text: Buffer, maxDepth: number): ReadBody {
  const scan = scanJson(text, maxDepth);
  if (!scan.ok) return { ok: false, reason: scan.fault };
  return { ok: true, batch: scan.batch, messages: scan.values.map((value) => readMessage(text, value)) };
}

function readMessage(whole: Buffer, { start, end, message, params, meta }: ScannedValue): ReadMessage {
  const idRange = memberRange(message, 'id');
  const id = idRange && decodeId(whole, idRange.start, idRange.end);
  const refuse = (reason: Reason): ReadMessage => ({ ok: false, reason, id: id ?? null });

  if (decodeString(whole, message, 'jsonrpc') !== '2.0') return refuse('not_json_rpc');
  const hasMethod = memberRange(message, 'method') !== undefined;
  const method = decodeString(whole, message, 'method');
  const outcomes =
    Number(memberRange(message, 'result') !== undefined) + Number(memberRange(message, 'error') !== undefined);
  if (hasMethod ? method === undefined || outcomes > 0 : outcomes !== 1) return refuse('not_json_rpc');
  if (params === undefined && !isAbsentOrNull(whole, message, 'params')) return refuse('not_json_rpc');
  if (idRange === undefined && !hasMethod) return refuse('not_json_rpc');
  if (idRange !== undefined && (id === undefined || (id === null && hasMethod))) return refuse('bad_id');

  const kind = !hasMethod ? 'response' : idRange === undefined ? 'notification' : 'request';
  const text = start === 0 && end === whole.length ? whole : whole.subarray(start, end);
  return {
    ok: true,
    message: {
      kind,
      text,
      id,
      method,
      progressToken: decodeToken(whole, kind, method, params, meta),
      cancels: method === 'notifications/cancelled' ? decodeIdMember(whole, params, 'requestId') : undefined,
      taskId: decodeTaskId(whole, params, meta),
      isModern: memberRange(meta, protocolVersionKey) !== undefined,
    },
  };
}

function isAbsentOrNull(text: Buffer, members: Members | undefined, key: string): boolean {
  const range = memberRange(members, key);
  return range === undefined || text[range.start] === 0x6e; // `n`: the scan has checked that it is `null`
}

/** An id's value; null for null; undefined for what no id may be. */
function decodeId(text: Buffer, start: number, end: number): RequestId | null | undefined {
  const first = text[start] as number;
  if (first === 0x6e) return null;
  // Six bytes for each character at most (`\u0041`), so a longer slice need not be decoded to be refused.
  if (end - start > maxIdLength * 6 + 2) return undefined;
  if (first === 0x22) {
    const id = JSON.parse(text.toString('utf8', start, end)) as string;
    return id.length <= maxIdLength ? id : undefined;
  }
  const id =
    first === 0x2d || (first >= 0x30 && first <= 0x39) ? Number(text.toString('latin1', start, end)) : undefined;
  return Number.isSafeInteger(id) ? id : undefined;
}

function decodeIdMember(text: Buffer, members: Members | undefined, key: string): RequestId | undefined {
  const range = memberRange(members, key);
  return (range && decodeId(text, range.start, range.end)) ?? undefined;
}

function decodeString(text: Buffer, members: Members | undefined, key: string): string | undefined {
  const range = memberRange(members, key);
  if (range === undefined || text[range.start] !== 0x22) return undefined;
  const plain = text.toString('utf8', range.start + 1, range.end - 1);
  return plain.includes('\\') ? (JSON.parse(`"${plain}"`) as string) : plain;
}

function decodeToken(
  text: Buffer,
  kind: Message['kind'],
  method: string | undefined,
  params: Members | undefined,
  meta: Members | undefined,
): RequestId | undefined {
  if (kind === 'request') return decodeIdMember(text, meta, 'progressToken');
  return method === 'notifications/progress' ? decodeIdMember(text, params, 'progressToken') : undefined;
}

function decodeTaskId(text: Buffer, params: Members | undefined, meta: Members | undefined): string | undefined {
  const related = memberRange(meta, relatedTaskKey);
  if (related === undefined) return decodeString(text, params, 'taskId');
  const value: unknown = JSON.parse(text.toString('utf8', related.start, related.end));
  const taskId = typeof value === 'object' && value !== null && 'taskId' in value ? value.taskId : undefined;
  return typeof taskId === 'string' ? taskId : undefined;
}
