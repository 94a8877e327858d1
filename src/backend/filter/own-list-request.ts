import { nextOwnId } from '../../protocol/ids/own-ids.ts';
import { scanObject } from '../../protocol/json/scan.ts';
import { type Message, memberRange, readGatewayMessage } from '../../protocol/message/message.ts';

/**
 * Creates a request for a page of a list, to check calls that come before any list.
 * @param call the call that needs the list. A modern request carries its protocol version and capabilities
 */
export function ownListRequest(method: string, cursor: string | undefined, call: Message): Message {
  const meta = call.isModern ? [`"_meta":${envelopeOf(call)}`] : [];
  const params = [...(cursor === undefined ? [] : [`"cursor":${JSON.stringify(cursor)}`]), ...meta].join();
  const text = `{"jsonrpc":"2.0","id":${nextOwnId()},"method":"${method}","params":{${params}}}`;
  return readGatewayMessage(Buffer.from(text));
}

/** The members of a modern request's `_meta` that every request carries, as JSON text. */
function envelopeOf(call: Message): string {
  const range = memberRange(call, 'params', '_meta');
  const meta = range === undefined ? Buffer.from('{}') : call.text.subarray(range.start, range.end);
  const members = scanObject(meta);
  if (members === undefined || members === 'duplicate_key') return '{}';
  const texts = members.keys.flatMap((key, index) => {
    const value = meta.toString('utf8', members.starts[index], members.ends[index]);
    return key.startsWith('io.modelcontextprotocol/') ? [`${JSON.stringify(key)}:${value}`] : [];
  });
  return `{${texts.join()}}`;
}
