import { readFileSync } from 'node:fs';
import type { Commands } from './connection/commands.ts';
import type { RedisClient } from './connection/connect.ts';

/** The arguments and replies of scripts. Text in a reply is bytes, since it need not be valid UTF-8. */
export type ScriptArgument = string | number | Buffer;
export type ScriptReply = number | Buffer | null | readonly ScriptReply[];

/** Runs a script by its name. The headers of the files in `scripts/` describe keys, arguments and replies. */
export type RunScript = (
  name: ScriptName,
  keys: readonly string[],
  args: readonly ScriptArgument[],
) => Promise<ScriptReply>;

/** The names of the files in `scripts/`: those of the log, of the records of sessions, of instances, and of others. */
const scriptNames = [
  ...(['append', 'read'] as const),
  ...(['create', 'change', 'register', 'take-over', 'end'] as const),
  ...(['join', 'store-generation'] as const),
  ...(['announce', 'use-rate', 'reserve'] as const),
];
type ScriptName = (typeof scriptNames)[number];

/** The name of a script as a command of the client, which is that of no command of Redis. */
const commandOf = (name: ScriptName) => `run ${name}` as const;

/** A client that knows the scripts. Their replies are bytes. */
type ScriptClient = Record<
  `${ReturnType<typeof commandOf>}Buffer`,
  (keyCount: number, ...args: readonly ScriptArgument[]) => Promise<ScriptReply>
>;

/**
 * Reads the scripts and returns the function that runs them. Sources and build both have the scripts beside this file.
 * The client sends the text of a script that its server does not know, and its digest from then on.
 */
export function createRunScript({ run }: Commands, client: RedisClient): RunScript {
  for (const name of scriptNames) {
    const lua = readFileSync(new URL(`./scripts/${name}.lua`, import.meta.url), 'utf8');
    client.defineCommand(commandOf(name), { lua });
  }
  const scripts = client as unknown as ScriptClient;
  return (name, keys, args) => run(() => scripts[`${commandOf(name)}Buffer`](keys.length, ...keys, ...args));
}
