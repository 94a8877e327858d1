import type { Environment } from '../../config/sources/environment-variables.ts';
import { minute } from '../../config/units.ts';
import { childEnvironment } from '../../core/backend/stdio/launch/child-environment.ts';
import { locate } from '../../core/backend/stdio/launch/locate-program.ts';
import { starter } from '../../core/backend/stdio/starter/starter.ts';
import { settlesWithin } from '../../core/util/timing/within.ts';
import type { RunTool } from '../features/servers.ts';

/** A program that installs for longer hangs, and is ended. */
const longestRunMs = 10 * minute;

/** The output that is kept of a program, which may write without end (P8). */
const maxOutputChars = 32 * 1024;

/**
 * Creates a function that runs programs such as npm. The starter starts them, so they end with the gateway (P10).
 * @param configured the variables of the server for which they run
 */
export const toolRunner =
  (environment: Environment, configured: Readonly<Record<string, string>>): RunTool =>
  async ({ command, args, cwd, as = command }) => {
    const env = childEnvironment(environment, configured, as);
    const program = { command, args, cwd, env };
    if (locate(program) === undefined) return 'not-found';
    const started = await starter.start(program);
    if ('failure' in started) throw started.failure;
    const { group, stdin, stdout, stderr, exited } = started;
    let output = '';
    stdin.on('error', () => undefined);
    stdin.end();
    for (const pipe of [stdout, stderr]) {
      pipe.setEncoding('utf8');
      pipe.on('error', () => undefined);
      pipe.on('data', (text: string) => {
        output = (output + text).slice(-maxOutputChars);
      });
    }
    const isInTime = await settlesWithin(exited, longestRunMs);
    if (!isInTime) output += `\n${command} was ended after ${longestRunMs / minute} minutes.`;
    // Scripts of a package may have left processes behind.
    if (group.exists()) group.signal('SIGKILL');
    const { exitCode } = await exited;
    for (const pipe of [stdin, stdout, stderr]) pipe.destroy();
    return { exitCode, output };
  };
