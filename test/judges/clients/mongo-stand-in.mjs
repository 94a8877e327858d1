// Stands in for a MongoDB server: node mongo-stand-in.mjs <database>. It answers what a driver asks to connect, and lists one
// database, by whose name one can tell which of several stand-ins a client is connected to. Prints its port.
import { createServer } from 'node:net';
import { deserialize, serialize } from 'bson';

const database = process.argv[2];
const opReply = 1;
const opQuery = 2004;
const opMessage = 2013;
const hello = {
  ...{ ok: 1, helloOk: true, isWritablePrimary: true, ismaster: true, minWireVersion: 0, maxWireVersion: 25 },
  ...{ maxBsonObjectSize: 16_777_216, maxMessageSizeBytes: 48_000_000, maxWriteBatchSize: 100_000, readOnly: false },
};
const commands = {
  listDatabases: () => ({ ok: 1, databases: [{ name: database, sizeOnDisk: 1, empty: false }], totalSize: 1 }),
  buildInfo: () => ({ ok: 1, version: '8.0.0', versionArray: [8, 0, 0, 0], modules: [] }),
};

function answerTo(command) {
  const [name] = Object.keys(command);
  if (/^(?:hello|ismaster)$/i.test(name)) return hello;
  return Object.hasOwn(commands, name) ? commands[name]() : { ok: 1 };
}

/** The answer to a message, in the form in which it was asked: old drivers open with OP_QUERY. */
function replyTo(message) {
  const [requestId, operation] = [message.readInt32LE(4), message.readInt32LE(12)];
  if (operation !== opQuery && operation !== opMessage) return undefined;
  const at = operation === opMessage ? 21 : message.indexOf(0, 20) + 9;
  const body = serialize(answerTo(deserialize(message.subarray(at, at + message.readInt32LE(at)))));
  const head = Buffer.alloc(operation === opMessage ? 21 : 36);
  head.writeInt32LE(head.length + body.length, 0);
  head.writeInt32LE(requestId, 8);
  head.writeInt32LE(operation === opMessage ? opMessage : opReply, 12);
  if (operation === opQuery) head.writeInt32LE(1, 32);
  return Buffer.concat([head, body]);
}

const server = createServer((socket) => {
  let rest = Buffer.alloc(0);
  socket.on('error', () => undefined);
  socket.on('data', (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= 16 && rest.length >= rest.readInt32LE(0)) {
      const length = rest.readInt32LE(0);
      const reply = replyTo(rest.subarray(0, length));
      if (reply !== undefined) socket.write(reply);
      rest = rest.subarray(length);
    }
  });
});
server.listen(0, '127.0.0.1', () => process.stdout.write(`${server.address().port}\n`));
