import { appendFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Gateway } from '../support/gateway.ts';
import type { Ledger } from './ledger.ts';
import type { Stage } from './stage.ts';

/** On these levels a gateway tells of a fault of its own, which nothing that is done here explains. */
const faults: ReadonlySet<string> = new Set(['error', 'fatal']);

/** Reads the logs of all gateways that run or ran, keeps them in a file each, and counts what they say. */
export function createLogBook(stage: Stage, ledger: Ledger) {
  const lines = new Map<string, number>();
  /** How much was read of what each has written, to stdout and to stderr. */
  const known = new Map<Gateway, [number, number]>();

  const readOne = async (gateway: Gateway, from: [number, number]): Promise<void> => {
    for (const [index, whole] of [gateway.stdout(), gateway.stderr()].entries()) {
      const fresh = whole.slice(from[index], whole.lastIndexOf('\n') + 1);
      if (fresh === '') continue;
      from[index] = (from[index] as number) + fresh.length;
      await appendFile(join(stage.folder, `gateway-${gateway.pid}.log`), fresh);
      for (const line of fresh.split('\n')) note(gateway, line);
    }
  };
  const note = (gateway: Gateway, line: string): void => {
    if (!line.startsWith('{')) return;
    const { level, msg, err } = JSON.parse(line);
    const name = `${level}: ${msg}`;
    lines.set(name, (lines.get(name) ?? 0) + 1);
    if (!faults.has(level)) return;
    ledger.fail(`gateway ${gateway.pid} logged ${name} ${err?.message ?? ''}: ${line.slice(0, 600)}`);
  };
  const read = async (): Promise<void> => {
    for (const gateway of [stage.upstream, ...stage.cluster.instances]) {
      if (!known.has(gateway)) known.set(gateway, [0, 0]);
    }
    for (const [gateway, from] of known) await readOne(gateway, from);
  };
  return { lines, read, close: read };
}
