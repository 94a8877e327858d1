import { expectNoLeak } from './canaries.ts';
import { type Reply, sendCommand } from './resp.ts';

/** The maximum number of values to read. In tests with thousands of sessions, the others are of the same kinds. */
const maxValues = 2_000;

/** Reads every key and value, each as the command for its type has it; of a stream the entries that are not deleted. */
const readAll = `
local read = {
  string = {'GET'}, hash = {'HGETALL'}, set = {'SMEMBERS'},
  list = {'LRANGE', 0, -1}, zset = {'ZRANGE', 0, -1}, stream = {'XRANGE', '-', '+'},
}
local keys, values = redis.call('KEYS', '*'), {}
for index = 1, math.min(#keys, tonumber(ARGV[1])) do
  local key = keys[index]
  local command = read[redis.call('TYPE', key).ok]
  if command then values[index] = redis.call(command[1], key, unpack(command, 2)) else values[index] = '' end
end
return {keys, values}`;

/**
 * Throws if a secret of the test run lies in a Redis. Messages are what its values are made for; ids of sessions have
 * only hashes there (`keys.ts`).
 */
export async function expectNoLeakInRedis(port: number): Promise<void> {
  const reply = await sendCommand(port, ['EVAL', readAll, '0', `${maxValues}`]).catch((error: Error) => error);
  if (reply instanceof Error) {
    if (reply.message.startsWith('NOAUTH')) return; // only the test knows the password
    // A node of a cluster that has lost slots to another one still has keys of theirs, which no script may look at.
    if (reply.message.includes('non local key')) return;
    throw reply;
  }
  const [keys, values] = reply as readonly Reply[];
  expectNoLeak('keys of Redis', textOf(keys));
  expectNoLeak('values of Redis', textOf(values), { allowsContent: true });
}

const textOf = (reply: Reply | undefined): string => {
  if (reply === undefined || reply === null) return '';
  if (Array.isArray(reply)) return reply.map(textOf).join('\n');
  return Buffer.isBuffer(reply) ? reply.toString('latin1') : String(reply);
};

/** The whole content of a Redis as text. */
export async function contentsOfRedis(url: string): Promise<string> {
  return textOf(await sendCommand(Number(new URL(url).port), ['EVAL', readAll, '0', `${maxValues}`]));
}
