// Loaded into a gateway before its own code: answers each message of the parent process with a number of the process.
// The memory is what is in use after a full collection. The resident memory also has pages that V8 gives back later.

function memory() {
  for (let round = 0; round < 3; round += 1) globalThis.gc();
  const { heapUsed, external, rss } = process.memoryUsage();
  return { usedBytes: heapUsed + external, residentBytes: rss };
}

function cpuMs() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

process.on('message', (what) => process.send(what === 'memory' ? memory() : cpuMs()));
// The channel to the parent keeps no gateway running.
process.channel.unref();
