import { maxNameLength } from '../protocol/message/call-name.ts';
import type { ListSubscriber, NamedKind } from './list-reader.ts';

/**
 * The names of one kind that are kept for each server, until the gateway ends (P8). Each name is a label of numbers, and
 * a server chooses its names: without the limit, one that lists new names again and again would fill the memory.
 */
const maxNames = 100;

/** The label of every name that is not listed, or is one too many. */
export const otherName = 'other';

/**
 * The names of tools and prompts that servers have listed, as their clients see them. A client can call any name, so only
 * these are labels of numbers.
 */
export class OfferedNames {
  readonly #byServer = new Map<string, Readonly<Record<NamedKind, Set<string>>>>();

  /** Returns the name if the server has listed it, and `other` for all other names. */
  label(server: string, kind: NamedKind, name: string): string {
    return this.#byServer.get(server)?.[kind].has(name) === true ? name : otherName;
  }

  /** Learns from the lists of a server. */
  of(server: string): ListSubscriber {
    const names = this.#byServer.get(server) ?? { tool: new Set<string>(), prompt: new Set<string>() };
    this.#byServer.set(server, names);
    return ({ name }, kind) => {
      if (names[kind].size < maxNames) names[kind].add(name.slice(0, maxNameLength));
    };
  }
}
