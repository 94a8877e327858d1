import { valueAt } from '../../json/splice.ts';
import { type Message, memberRange } from '../../message/message.ts';
import { withoutTasks } from './legacy-client.ts';

/** The key of `_meta` under which a server identifies itself (2026-07-28, server/discover). */
export const serverInfoKey = 'io.modelcontextprotocol/serverInfo';

/**
 * Converts a modern server's answer to `server/discover` into the answer to a legacy client's `initialize`: its
 * identity, capabilities and instructions. The legacy era has a place for all its capabilities except tasks.
 * @param discovered the server's response, under the id of `initialize`; an error passes unchanged
 * @param revision the revision of the session
 * @param serverName the name of a server that does not identify itself
 */
export function toInitializeResult(discovered: Message, revision: string, serverName: string): Buffer {
  const result = valueAt(discovered.text, ['result']);
  const id = memberRange(discovered, 'message', 'id');
  if (result === undefined || id === undefined) return discovered.text;
  const capabilities = valueAt(discovered.text, ['result', 'capabilities']);
  const serverInfo = valueAt(discovered.text, ['result', '_meta', serverInfoKey]);
  const instructions = valueAt(discovered.text, ['result', 'instructions']);
  const members = [
    `"protocolVersion":${JSON.stringify(revision)}`,
    `"capabilities":${isObject(capabilities) ? withoutTasks(capabilities) : '{}'}`,
    `"serverInfo":${isObject(serverInfo) ? serverInfo : JSON.stringify({ name: serverName, version: 'unknown' })}`,
    ...(instructions?.[0] === 0x22 ? [`"instructions":${instructions}`] : []),
  ];
  const idText = discovered.text.toString('utf8', id.start, id.end);
  return Buffer.from(`{"jsonrpc":"2.0","id":${idText},"result":{${members.join()}}}`);
}

const isObject = (text: Buffer | undefined): text is Buffer => text?.[0] === 0x7b;
