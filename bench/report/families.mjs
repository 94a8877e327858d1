// Which targets stand in one table: those that are compared, in their order.
import { targets } from '../targets.mjs';

const words = {
  stdio: 'STDIO',
  sse: 'HTTP+SSE',
  http: 'Streamable HTTP',
  same: 'clients and server of the same era',
  legacy: '2026-07-28 clients, legacy server',
  modern: 'legacy clients, 2026-07-28 server',
};

/** Ours, what they are compared with, others of ours, peers. */
const rankOf = (name) => {
  const { isPeer, isIdeal, only } = targets[name];
  if (isPeer) return 3;
  if (only !== undefined) return 2;
  return isIdeal ? 1 : 0;
};

/** `{ title, names }` for each, the plain one first. */
export const families = ['same', 'legacy', 'modern'].flatMap((server) =>
  ['stdio', 'sse', 'http'].map((transport) => ({
    title: `${words[transport]}, ${words[server]}`,
    isPlain: server === 'same' && transport === 'stdio',
    names: Object.entries(targets)
      .filter(([, target]) => target.transport === transport && (!target.isOurs || target.server === server))
      .map(([name]) => name)
      .sort((a, b) => rankOf(a) - rankOf(b)),
  })),
);
