import type { RequestId } from '../../../../core/protocol/faults.ts';
import { findRange, objectAt, stringAt, valueAt } from '../../../../core/protocol/json.ts';
import { newestLegacy } from '../../../../core/protocol/known-revisions.ts';
import { withId } from '../../../../core/protocol/message/changed-message.ts';
import { type Message, readGatewayMessage } from '../../../../core/protocol/message/message.ts';
import { tasksExtension } from '../../../../core/protocol/methods/extensions.ts';
import { serverInfoKey } from '../../../../core/protocol/modern/envelope.ts';
import { withoutUntranslated } from './legacy-client.ts';

/**
 * Converts a modern server's answer to `server/discover` into the answer to a legacy client's `initialize`: its
 * identity, capabilities and instructions. Tasks are declared in the way of the legacy era.
 * @param discovered the server's response; an error passes unchanged, except for the id
 * @param id the id of `initialize`
 * @param revision the revision of the session
 * @param serverName the name of a server that does not identify itself
 */
export function toInitializeResult(discovered: Message, id: RequestId, revision: string, serverName: string): Message {
  const result = valueAt(discovered.text, ['result']);
  if (result === undefined) return withId(discovered, id);
  const capabilities = objectAt(discovered.text, ['result', 'capabilities']);
  const serverInfo = objectAt(discovered.text, ['result', '_meta', serverInfoKey]);
  const instructions = stringAt(discovered.text, ['result', 'instructions']);
  const members = [
    `"protocolVersion":${JSON.stringify(revision)}`,
    `"capabilities":${capabilities === undefined ? '{}' : legacyCapabilities(capabilities, revision)}`,
    `"serverInfo":${serverInfo ?? JSON.stringify({ name: serverName, version: 'unknown' })}`,
    ...(instructions === undefined ? [] : [`"instructions":${instructions}`]),
  ];
  const text = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{${members.join()}}}`;
  return readGatewayMessage(Buffer.from(text));
}

/** The client may ask for tasks in its own way, if its revision has them and the server has the extension. */
function legacyCapabilities(capabilities: Buffer, revision: string): string {
  const text = withoutUntranslated(capabilities).toString();
  const hasTasks = typeof findRange(capabilities, ['extensions', tasksExtension]) === 'object';
  if (!hasTasks || revision !== newestLegacy.name) return text;
  const rest = text.slice(text.indexOf('{') + 1);
  return `{"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}${rest.trim() === '}' ? '' : ','}${rest}`;
}
