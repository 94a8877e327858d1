import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Commands } from './connection/commands.ts';
import { replyErrorCode } from './connection/reply-error.ts';

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
export type ScriptName = (typeof scriptNames)[number];

/**
 * Reads the scripts and returns the function that runs them. Sources and build both have the scripts beside this file.
 */
export function createRunScript({ run }: Commands): RunScript {
  const scripts = new Map(scriptNames.map((name) => [name, loadScript(name)]));
  /**
   * Scripts that Redis did not know and that are being sent. Later calls wait, so that they do not overtake earlier
   * ones.
   */
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
      () => undefined, // the caller gets the error from `sending`
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

function loadScript(name: ScriptName): Script {
  const text = readFileSync(new URL(`./scripts/${name}.lua`, import.meta.url), 'utf8');
  return { text, sha: createHash('sha1').update(text).digest('hex') };
}
