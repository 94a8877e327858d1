// A published client uses a browser: node browse.mjs <targets>. The targets are a JSON array of { client, page, server }, where
// `client` is a name in browser-clients.mjs and `page` has a button that changes its title. Prints one
// { title, medianMs } for each target as JSON. The targets take turns in each round of timed calls, so that what else the
// machine does meets all of them.
import { clients } from './browser-clients.mjs';

const rounds = 41;

async function press({ client, page, server }) {
  const connected = await clients[client](server);
  await connected.call('browser_navigate', { url: page });
  await connected.call('browser_click', { element: 'the button', target: 'button' });
  const answer = await connected.call('browser_evaluate', { function: '() => document.title' });
  return { ...connected, title: /### Result\s+"(.*)"/.exec(answer)?.[1] ?? answer, times: [] };
}

const pressed = [];
for (const target of JSON.parse(process.argv[2])) pressed.push(await press(target));
for (let round = 0; round < rounds; round += 1) {
  for (const { call, times } of round % 2 === 0 ? pressed : pressed.toReversed()) {
    const startedAt = performance.now();
    await call('browser_tabs', { action: 'list' });
    times.push(performance.now() - startedAt);
  }
}
const median = (times) => times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)];
const seen = pressed.map(({ title, times }) => ({ title, medianMs: median(times) }));
await Promise.all(pressed.map(({ close }) => close()));
process.stdout.write(`${JSON.stringify(seen)}\n`, () => process.exit(0));
