// What stands behind the targets of a run: the STDIO server's command, a Redis, an issuer of tokens and servers that run by themselves, each only if a
// target needs it.
import { ourProgram } from '../targets.mjs';
import { nodeBackend, prepareBackend } from './backend.mjs';
import { requireBuild } from './command.mjs';
import { startIssuer } from './issuer.mjs';
import { startRedis } from './redis.mjs';
import { startRemotes } from './remote.mjs';

/** Starts what these targets need. */
export async function startBehind(targets) {
  if (targets.some(({ isOurs }) => isOurs)) requireBuild(ourProgram);
  const backend = prepareBackend();
  const redis = targets.some(({ usesRedis }) => usesRedis) ? await startRedis() : undefined;
  const issuer = targets.some(({ usesToken }) => usesToken) ? await startIssuer() : undefined;
  const remotes = await startRemotes(targets.flatMap(({ transport }) => (transport === 'stdio' ? [] : [transport])));
  return {
    backend,
    /** What `argv` of a target gets. */
    places: {
      command: backend.command,
      nodeCommand: nodeBackend.command,
      redisPort: `${redis?.port}`,
      issuer: issuer?.url,
      urls: remotes.urls,
    },
    /** What clients of a target with `usesToken` show. */
    token: issuer?.token,
    async stop() {
      issuer?.stop();
      await remotes.stop();
      await redis?.stop();
    },
  };
}
