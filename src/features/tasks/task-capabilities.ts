import { valueAt } from '../../core/protocol/json.ts';
import { putMembers, withoutMember } from '../../core/protocol/message/edit-members.ts';
import { type Message, memberRange, readGatewayMessage } from '../../core/protocol/message/message.ts';
import { tasksExtension } from '../../core/protocol/methods/extensions.ts';
import { clientCapabilitiesKey } from '../../core/protocol/modern/envelope.ts';

/** The capabilities that a client of the modern era declares with a request, as JSON text; undefined for none. */
export const declaredCapabilities = (request: Message): Buffer | undefined => {
  const range = memberRange(request, 'meta', clientCapabilitiesKey);
  return range && request.text.subarray(range.start, range.end);
};

/** The request of a client that seems to know no tasks. */
export function withoutTasksDeclared(request: Message): Message {
  const capabilities = declaredCapabilities(request);
  if (capabilities === undefined) return request;
  const by = withoutMember(capabilities, ['extensions', tasksExtension]).toString();
  return readGatewayMessage(putMembers(request, 'meta', [[clientCapabilitiesKey, by]]));
}

/** True if the client accepts a task in place of an answer, by this request. */
export function declaresTasks(request: Message): boolean {
  const capabilities = declaredCapabilities(request);
  // Most clients do not, and need no second look.
  if (capabilities?.includes(tasksExtension) !== true) return false;
  return valueAt(capabilities, ['extensions', tasksExtension]) !== undefined;
}

/** The text of a request that declares tasks for its client. */
export function declaringTasks(request: Message): Buffer {
  const capabilities = declaredCapabilities(request) ?? Buffer.from('{}');
  const known = valueAt(capabilities, ['extensions'])?.toString().trim() ?? '{}';
  const others = known.slice(1, -1).trim();
  const extensions = `{"${tasksExtension}":{}${others === '' ? '' : `,${others}`}}`;
  const rest = withoutMember(capabilities, ['extensions']).toString().trim().slice(1, -1).trim();
  const text = `{"extensions":${extensions}${rest === '' ? '' : `,${rest}`}}`;
  return putMembers(request, 'meta', [[clientCapabilitiesKey, text]]);
}
