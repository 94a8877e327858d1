import { type Message, readOne } from '../../src/core/protocol/message/message.ts';

/** The fields of a message that decide where it goes. */
export function routingFields(message: Message | undefined): Partial<Message> | undefined {
  if (message === undefined) return undefined;
  const { kind, id, method, progressToken, cancels, taskId, asksForTask, isModern, isError } = message;
  return { kind, id, method, progressToken, cancels, taskId, asksForTask, isModern, isError };
}

/** The same fields as a reader of the message's text finds them. */
export const fieldsInText = ({ text }: Message): Partial<Message> | undefined => routingFields(readOne(text));
