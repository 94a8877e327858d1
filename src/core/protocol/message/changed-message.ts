// Messages that the gateway makes from others by changing single members of their text.
import { detachedCopy } from '../../util/detached-bytes.ts';
import type { RequestId } from '../faults.ts';
import { type Members, replaceParts } from '../json.ts';
import { rescanMembers } from './member-ranges.ts';
import { memberRange } from './message.ts';
import type { MemberRanges, Message, StandIn } from './message-type.ts';

/** Members that differ between a message and the one that it was made from. */
export type ChangedMembers = Partial<Pick<Message, 'id' | 'progressToken' | 'cancels' | 'asksForTask' | 'isModern'>>;

/** A message that the gateway made from another one by changing single members in its text. */
export function changedMessage(origin: Message, text: Buffer, changes: ChangedMembers): Message {
  return new ChangedMessage(origin, text, changes);
}

/** The same request or response under another id. It throws if the message has no id. */
export function withId(message: Message, id: RequestId): Message {
  const range = memberRange(message, 'message', 'id');
  if (range === undefined) throw new Error('the message has no id');
  const by = JSON.stringify(id);
  const text = replaceParts(message.text, [{ ...range, by }]);
  const ranges = shiftedRanges(message.memberRanges, range.end, text.length - message.text.length);
  return new ChangedMessage(message, text, { id }, ranges);
}

/** The ranges after a value that ends at `from` in the message's text has become longer by `by` bytes. */
function shiftedRanges({ start, message, params, meta }: MemberRanges, from: number, by: number): MemberRanges {
  const shifted = (position: number): number => position - start + (position - start >= from ? by : 0);
  const shiftedMembers = (members: Members | undefined): Members | undefined =>
    members && { keys: members.keys, starts: members.starts.map(shifted), ends: members.ends.map(shifted) };
  return { start: 0, message: shiftedMembers(message), params: shiftedMembers(params), meta: shiftedMembers(meta) };
}

/** The same message, with a text that shares no memory with a larger buffer, so that it can be kept. */
export const detachedMessage = (message: Message): Message => changedMessage(message, detachedCopy(message.text), {});

class ChangedMessage implements Message {
  readonly kind: Message['kind'];
  readonly text: Buffer;
  readonly id: Message['id'];
  readonly method: string | undefined;
  readonly progressToken: RequestId | undefined;
  readonly cancels: RequestId | undefined;
  readonly taskId: string | undefined;
  readonly asksForTask: boolean;
  readonly isModern: boolean;
  readonly isError: boolean;
  readonly reportsToolError: boolean;
  readonly standIn: StandIn | undefined;
  #ranges: MemberRanges | undefined;

  /** @param ranges if they are known */
  constructor(origin: Message, text: Buffer, changes: ChangedMembers, ranges?: MemberRanges) {
    this.#ranges = ranges;
    this.kind = origin.kind;
    this.text = text;
    this.id = 'id' in changes ? changes.id : origin.id;
    this.method = origin.method;
    this.progressToken = changes.progressToken ?? origin.progressToken;
    this.cancels = changes.cancels ?? origin.cancels;
    this.taskId = origin.taskId;
    this.asksForTask = changes.asksForTask ?? origin.asksForTask;
    this.isModern = changes.isModern ?? origin.isModern;
    this.isError = origin.isError;
    this.reportsToolError = origin.reportsToolError;
    this.standIn = origin.standIn;
  }

  get memberRanges(): MemberRanges {
    this.#ranges ??= rescanMembers(this.text);
    return this.#ranges;
  }
}
