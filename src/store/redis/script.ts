import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Commands } from './connection/commands.ts';
import { replyErrorCode } from './connection/reply-error.ts';

/** What goes to a script, and what comes back: text as bytes, since it may be any. */
export type ScriptArgument = string | number | Buffer;
export type ScriptReply = number | Buffer | null | readonly ScriptReply[];

/** Runs scripts by name: the files in `scripts/`, whose headers say what goes in and out. */
export type RunScript = (
  name: ScriptName,
  keys: readonly string[],
  args: readonly ScriptArgument[],
) => Promise<ScriptReply>;

/** The scripts, by the folder in `scripts/` that they lie in: each folder changes one part of the data. */
const namesOf = {
  log: ['append', 'read'],
  records: ['create', 'amend', 'release', 'progress', 'register', 'take-over', 'renew', 'end'],
  instances: [
    'join',
    'open-mailbox',
    'redeliver',
    'withdraw',
    'prolong',
    'store-generation',
    'declare-dead',
    'enqueue',
    'discard',
    'backlog',
  ],
  shared: ['announce', 'keep-outcome', 'use-rate'],
} as const;
export type ScriptName = (typeof namesOf)[keyof typeof namesOf][number];

/** Reads the scripts. They are beside this file, in the sources as in what is built from them. */
export function createRunScript({ run }: Commands): RunScript {
  const scripts = new Map<ScriptName, Script>(
    Object.entries(namesOf).flatMap(([folder, names]) =>
      names.map((name) => [name, loadScript(folder, name)] as const),
    ),
  );
  /** A script that the server did not know is being sent: later calls wait for it, or they would overtake earlier ones. */
  const loading = new Map<ScriptName, Promise<unknown>>();

  const send = (
    command: 'eval' | 'evalsha',
    script: string,
    keys: readonly string[],
    args: readonly ScriptArgument[],
  ) => run((client) => client.callBuffer(command, script, keys.length, ...keys, ...args)) as Promise<ScriptReply>;

  return async (name, keys, args) => {
    const { text, sha } = scripts.get(name) as Script;
    const earlier = loading.get(name);
    if (earlier !== undefined) await earlier;
    try {
      return await send('evalsha', sha, keys, args);
    } catch (error) {
      if (replyErrorCode(error) !== 'NOSCRIPT') throw error;
    }
    const sending = send('eval', text, keys, args);
    const settled = sending.then(
      () => undefined,
      () => undefined, // it is told to who awaits `sending`
    );
    loading.set(name, settled);
    try {
      return await sending;
    } finally {
      if (loading.get(name) === settled) loading.delete(name);
    }
  };
}

interface Script {
  readonly text: string;
  readonly sha: string;
}

function loadScript(folder: string, name: ScriptName): Script {
  const text = readFileSync(new URL(`./scripts/${folder}/${name}.lua`, import.meta.url), 'utf8');
  return { text, sha: createHash('sha1').update(text).digest('hex') };
}
