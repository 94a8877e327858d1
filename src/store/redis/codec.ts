import type { LogPosition } from '../../protocol/wire/event-id.ts';
import type { PendingCall } from '../event-log.ts';
import type { LogState, SessionRecord, StreamTail } from '../session-records.ts';
import type { ScriptArgument, ScriptReply } from './script.ts';

/** Formats a position as `<epoch>-<seq>`, the form of Redis' entry ids. */
export const formatLogPosition = ({ epoch, seq }: LogPosition): string => `${epoch}-${seq}`;

/** Parses a position. */
export function parseLogPosition(text: string): LogPosition {
  const [epoch, seq] = text.split('-');
  return { epoch: Number(epoch), seq: Number(seq) };
}

/** Formats a tail as `<position> <1 if ended>`. */
export const formatStreamTail = ({ newest, ended }: StreamTail): string =>
  `${formatLogPosition(newest)} ${ended ? 1 : 0}`;

/** Formats the name of a pending request: the JSON text of its id, which tells 1 from "1". */
export const formatRequestId = (id: PendingCall['id']): string => JSON.stringify(id);

/**
 * Formats a pending request: a line of JSON, then the request's text. A hash has no order, so the line also says where
 * the request was opened.
 * @param opened the position of the event that opened the request
 * @param index the index of the request among those that the event opened
 */
export function formatPending(call: PendingCall, opened: LogPosition, index: number): Buffer {
  const { stream, method, name, text, client } = call;
  const line = JSON.stringify([
    opened.epoch,
    opened.seq,
    index,
    stream,
    method,
    text !== undefined,
    ...(name === undefined && client === undefined ? [] : [name ?? null]),
    ...(client === undefined ? [] : [client]),
  ]);
  return Buffer.concat([Buffer.from(`${line}\n`), text ?? Buffer.alloc(0)]);
}

/** Parses the log's state from the hashes of tails and pending requests, both flat lists of names and values. */
export function parseState(newestStream: ScriptReply, tails: ScriptReply, pending: ScriptReply): LogState {
  const streams = pairsOf(tails).map(([stream, value]): [number, StreamTail] => {
    const [position = '', ended] = textOf(value).split(' ');
    return [Number(textOf(stream)), { newest: parseLogPosition(position), ended: ended === '1' }];
  });
  const calls = pairsOf(pending).map(([id, value]) => parsePending(textOf(id), value as Buffer));
  calls.sort((a, b) => a.order[0] - b.order[0] || a.order[1] - b.order[1] || a.order[2] - b.order[2]);
  return {
    tails: new Map(streams.sort(([a], [b]) => a - b)),
    newestStream: Number(textOf(newestStream)),
    pending: calls.map(({ call }) => call),
  };
}

function parsePending(id: string, value: Buffer): { call: PendingCall; order: readonly [number, number, number] } {
  const end = value.indexOf(0x0a);
  const [epoch, seq, index, stream, method, hasText, name, client] = JSON.parse(value.toString('utf8', 0, end));
  const text = hasText ? value.subarray(end + 1) : undefined;
  const named = typeof name === 'string' && { name };
  const call = { stream, id: JSON.parse(id), method, text, ...named, ...(client !== undefined && { client }) };
  return { call, order: [epoch, seq, index] };
}

/** Formats the log's state as script arguments: counted pairs of tails, then counted pairs of pending requests. */
export function stateArguments({ tails, pending }: LogState): ScriptArgument[] {
  const tailArguments = [...tails].flatMap(([stream, tail]) => [stream, formatStreamTail(tail)]);
  const pendingArguments = pending.flatMap((call, index) => [
    formatRequestId(call.id),
    formatPending(call, { epoch: 0, seq: 0 }, index),
  ]);
  return [tails.size, ...tailArguments, pending.length, ...pendingArguments];
}

/** Formats a record as script arguments: epoch, owner, head, initialize, initialized, clientState. */
export function recordArguments(record: SessionRecord): ScriptArgument[] {
  const { server, serverDigest, principal, protocolVersion } = record;
  const head = JSON.stringify({ server, serverDigest, principal, protocolVersion });
  return [record.epoch, record.owner, head, record.initialize, record.initialized, record.clientState];
}

/** Parses a record from the same fields, followed by `clientSaid`. */
export function parseRecord(fields: readonly ScriptReply[]): SessionRecord {
  const [epoch, owner, head, initialize, initialized, clientState, clientSaid] = fields as Buffer[];
  return {
    ...(JSON.parse(textOf(head)) as Pick<SessionRecord, 'server' | 'serverDigest' | 'principal' | 'protocolVersion'>),
    owner: textOf(owner),
    epoch: Number(textOf(epoch)),
    initialize: initialize as Buffer,
    initialized: initialized as Buffer,
    clientState: clientState as Buffer,
    clientSaid: clientSaid ?? noBytes,
  };
}

const noBytes = Buffer.alloc(0);

/** Returns the text of a reply. */
export const textOf = (reply: ScriptReply | undefined): string => (reply ?? '').toString();

function pairsOf(flat: ScriptReply): [ScriptReply, ScriptReply][] {
  const list = flat as readonly ScriptReply[];
  return Array.from({ length: list.length / 2 }, (_, index) => [
    list[index * 2] as ScriptReply,
    list[index * 2 + 1] as ScriptReply,
  ]);
}
