// Published clients that call and call: node keep-calling.mjs <url> <sessions>. The sessions are spread over all clients of
// browser-clients.mjs. Each calls the tool `work` of test/support/journal-server.mjs under a mark of its own, one call after
// the other, with one client object for all of its calls. A line on stdin ends this: each session then calls until it has
// one more answer, or until its time is up. Prints `ready`, and at the end one { client, answered, failed, hasRecovered } for
// each session as JSON.
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { clients } from './browser-clients.mjs';

const [, , url, count] = process.argv;
const recoveryMs = 60_000;
const pauseMs = 100;

let endAt = Number.POSITIVE_INFINITY;
const names = Object.keys(clients);
const sessions = [];
// Some at once: a hundred servers that start at the same time take longer than some clients wait.
for (let from = 0; from < Number(count); from += names.length) {
  const group = names.slice(0, Number(count) - from).map(async (client, offset) => {
    const connected = await clients[client]({ url });
    return { client, index: from + offset, ...connected, answered: [], failed: [], hasRecovered: false };
  });
  sessions.push(...(await Promise.all(group)));
}
process.stdout.write('ready\n');

async function keepCalling(session) {
  for (let n = 0; performance.now() < endAt && !session.hasRecovered; n += 1) {
    const mark = `${session.index}-${n}`;
    const isEnding = endAt < Number.POSITIVE_INFINITY;
    try {
      const text = await session.call('work', { call: mark, ms: session.index % 20 });
      if (!text.includes(`"${mark}"`)) throw new Error(`not its answer: ${text}`);
      session.answered.push(mark);
      session.hasRecovered = isEnding;
    } catch (error) {
      session.failed.push(`${mark}: ${error instanceof Error ? error.message : error}`);
    }
    await delay(pauseMs);
  }
}

const working = Promise.all(sessions.map(keepCalling));
await once(process.stdin, 'data');
endAt = performance.now() + recoveryMs;
await working;
const seen = sessions.map(({ client, answered, failed, hasRecovered }) => ({ client, answered, failed, hasRecovered }));
process.stdout.write(`${JSON.stringify(seen)}\n`, () => process.exit(0));
