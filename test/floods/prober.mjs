// Asks a gateway's /healthz again and again, and measures the processor time of the gateway's main thread meanwhile. A
// process of its own, and ahead of others: while it waited for a processor, the gateway's time would count against the
// gateway. Arguments: port and pid of the gateway. Each line on stdin asks for the figures since the last one.
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { setPriority } from 'node:os';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';

const [port, pid] = process.argv.slice(2);
try {
  setPriority(-15);
} catch {
  // takes root
}

/** The processor time of the gateway's main thread, in milliseconds (Documentation/scheduler/sched-stats.rst). */
const cpuMs = () => Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6;

const request = 'GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n';

/** Resolves with the processor time until the answer. On a connection of its own, as probes of orchestrators are. */
const probe = () =>
  new Promise((resolve, reject) => {
    const before = cpuMs();
    const socket = connect(Number(port), '127.0.0.1');
    socket.write(request);
    socket.once('data', (data) => {
      const ms = cpuMs() - before;
      socket.destroy();
      if (data.toString().startsWith('HTTP/1.1 200')) resolve(ms);
      else reject(new Error(`/healthz answered ${data}`));
    });
    socket.once('error', reject);
  });

let maxMs = 0;
let probes = 0;
createInterface({ input: process.stdin })
  .on('line', () => {
    process.stdout.write(`${JSON.stringify({ maxMs, probes })}\n`);
    maxMs = 0;
    probes = 0;
  })
  .once('close', () => process.exit());

for (;;) {
  maxMs = Math.max(maxMs, await probe());
  probes += 1;
  await delay(5);
}
