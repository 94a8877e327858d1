// What stands behind the targets of a run: the STDIO server's command, a Redis, and a server that runs by itself, each only if a target needs it.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { ourProgram } from '../targets.mjs';
import { nodeBackend, prepareBackend } from './backend.mjs';
import { requireBuild } from './command.mjs';
import { startRedis } from './redis.mjs';

const remoteProgram = path.join(path.dirname(fileURLToPath(import.meta.url)), '../backend/remote.mjs');

/** Starts what these targets need. */
export async function startBehind(targets) {
  if (targets.some(({ isOurs }) => isOurs)) requireBuild(ourProgram);
  for (const { prepare } of targets) prepare?.();
  const backend = prepareBackend();
  const redis = targets.some(({ usesRedis }) => usesRedis) ? await startRedis() : undefined;
  const remote = targets.some(({ isRemote }) => isRemote) ? await startRemote() : undefined;
  return {
    backend,
    /** What `argv` of a target gets. */
    places: {
      command: backend.command,
      nodeCommand: nodeBackend.command,
      redisPort: `${redis?.port}`,
      url: remote?.url,
    },
    redisPid: redis?.pid,
    async stop() {
      await remote?.stop();
      await redis?.stop();
    },
  };
}

/** A Streamable HTTP server, with its URL. */
async function startRemote() {
  const child = spawn(process.execPath, [remoteProgram], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = await once(child.stdout, 'data');
  return {
    url: `${line}`.trim(),
    async stop() {
      const exited = once(child, 'exit');
      child.kill();
      await exited;
    },
  };
}
