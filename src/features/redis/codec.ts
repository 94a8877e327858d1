import type { LogPosition } from '../../core/protocol/wire/event-id.ts';
import type { PendingCall } from '../../core/store/event-log.ts';
import {
  type LogState,
  OtherRecordVersion,
  type SessionRecord,
  type StreamTail,
} from '../../core/store/session-records.ts';
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

/** Formats the tails of the log's state as script arguments: pairs of a stream and its tail. */
export const tailArguments = ({ tails }: LogState): ScriptArgument[] =>
  [...tails].flatMap(([stream, tail]) => [stream, formatStreamTail(tail)]);

/** Formats the pending requests of the log's state as script arguments: pairs of an id and the request. */
export const pendingArguments = ({ pending }: LogState): ScriptArgument[] =>
  pending.flatMap((call, index) => [formatRequestId(call.id), formatPending(call, { epoch: 0, seq: 0 }, index)]);

/** The versions of session records that a build of the gateway writes and reads. */
export interface RecordVersions {
  readonly written: number;
  readonly oldest: number;
  readonly newest: number;
}

/**
 * The versions of this build. A change that older builds would misread raises `newest`, and `written` follows with the
 * next release. So gateways of the release before, which run during an upgrade or after a roll-back, can read all
 * records.
 */
export const recordVersions: RecordVersions = { written: 1, oldest: 1, newest: 1 };

/** The members of a record that are bytes. The compiler names one that is missing. */
const byteMembers: Readonly<Record<ByteMember, true>> = {
  initialize: true,
  initialized: true,
  clientState: true,
  clientSaid: true,
};
type ByteMember = { [K in keyof SessionRecord]: SessionRecord[K] extends Buffer ? K : never }[keyof SessionRecord];

/**
 * Formats a record as the fields of its hash, name and value in turn. Bytes have the names of their members. The other
 * members are JSON in `head`, except those that scripts compare.
 */
export function recordFields(
  { epoch, owner, ...others }: SessionRecord,
  { written } = recordVersions,
): ScriptArgument[] {
  const isBytes = ([name]: [string, unknown]): boolean => Object.hasOwn(byteMembers, name);
  const members = Object.entries(others);
  const head = JSON.stringify(Object.fromEntries(members.filter((member) => !isBytes(member))));
  const bytes = members.filter(isBytes).flat() as ScriptArgument[];
  return ['epoch', epoch, 'owner', owner, 'version', written, 'head', head, ...bytes];
}

/**
 * Parses a record from the fields of its hash; undefined if there is no record. Throws `OtherRecordVersion` for one that
 * this build cannot read.
 */
export function parseRecord(hash: ScriptReply, { oldest, newest } = recordVersions): SessionRecord | undefined {
  const fields = new Map(pairsOf(hash).map(([name, value]) => [textOf(name), value as Buffer]));
  if (!fields.has('epoch')) return undefined;
  const version = Number(textOf(fields.get('version')));
  if (!(version >= oldest && version <= newest)) throw new OtherRecordVersion(version, oldest, newest);
  const bytes = Object.keys(byteMembers).map((name) => [name, fields.get(name) ?? noBytes]);
  return {
    ...JSON.parse(textOf(fields.get('head'))),
    ...(Object.fromEntries(bytes) as Pick<SessionRecord, ByteMember>),
    owner: textOf(fields.get('owner')),
    epoch: Number(textOf(fields.get('epoch'))),
  };
}

/** The value of a field of a record's hash. */
export const fieldOf = (hash: ScriptReply, field: 'newest' | 'version'): ScriptReply =>
  pairsOf(hash).find(([name]) => textOf(name) === field)?.[1] ?? null;

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
