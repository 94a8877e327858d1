// What Redis says of itself, over all of its nodes.
import { ask } from './redis-nodes.mjs';

const sections = ['memory', 'stats', 'commandstats', 'cpu', 'server'];

/** Memory in bytes, commands that ran (those inside of scripts too), bytes on the wire, CPU seconds, version. */
export async function usageOf(nodes) {
  const all = await Promise.all(nodes.map(usageOfOne));
  const sum = (name) => all.reduce((total, one) => total + one[name], 0);
  const sums = ['memoryBytes', 'residentBytes', 'ran', 'bytesIn', 'bytesOut', 'cpuSeconds'];
  return { version: all[0].version, ...Object.fromEntries(sums.map((name) => [name, sum(name)])) };
}

async function usageOfOne(node) {
  const info = (await Promise.all(sections.map((section) => ask(node, 'INFO', section)))).join('\n');
  const number = (name) => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(info)[1]);
  const calls = info.matchAll(/^cmdstat_(?!info|config|cluster)\S+?:calls=(\d+)/gm);
  return {
    version: /^redis_version:(\S+)/m.exec(info)[1],
    // Without the buffers of connections, which come and go with what is under way.
    memoryBytes: number('used_memory') - number('mem_clients_normal'),
    residentBytes: number('used_memory_rss'),
    ran: [...calls].reduce((total, [, count]) => total + Number(count), 0),
    bytesIn: number('total_net_input_bytes'),
    bytesOut: number('total_net_output_bytes'),
    cpuSeconds: number('used_cpu_user') + number('used_cpu_sys'),
  };
}
