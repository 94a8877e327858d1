import { valueAt } from '../../json/splice.ts';
import { type Message, memberRange } from '../../message/message.ts';
import { withoutTasks } from './legacy-client.ts';

/** The key of `_meta` under which a server says who it is (2026-07-28, server/discover). */
export const serverInfoKey = 'io.modelcontextprotocol/serverInfo';

/**
 * The answer to a legacy client's `initialize` that says what a modern server's answer to `server/discover` says: who it is,
 * what it can do, how it is used. All its capabilities have their place in the legacy era but tasks.
 * @param discovered the server's response, under the id of `initialize`; an error passes as it is
 * @param revision of the session
 * @param serverName stands for a server that does not say who it is
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
