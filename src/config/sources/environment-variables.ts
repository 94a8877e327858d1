import { environmentNameOf, nearestName } from '../options/option-names.ts';
import { globalOptions, serverOptions } from '../options/options.ts';
import { fromText, type Given } from './given-values.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Names the configuration file, like `--config`. */
export const configFileVariable = 'GANGWAY_CONFIG';

/** The variable in which hosting platforms pass the URL of a Redis; the same as `--redis`. */
const redisVariable = 'REDIS_URL';

/**
 * API keys, as `name:sha256:hash` or `name:key`, separated by commas. There is no such flag, because other users of a
 * machine can see the arguments of a process.
 */
export const apiKeysVariable = 'GANGWAY_API_KEYS';

/** Forces the WebAssembly scanner of JSON on or off, for tests. */
export const kernelVariable = 'GANGWAY_JSON_KERNEL';

const options = Object.entries({ ...globalOptions, ...serverOptions });

/**
 * The options that the environment sets. An empty variable counts as not set, because compose files create such ones.
 */
export function givenByEnvironment(env: Environment): Given {
  return new Map(
    options.flatMap(([key, { kind }]) => {
      const own = environmentNameOf(key);
      const name = key === 'redis' && !env[own] ? redisVariable : own;
      const text = env[name];
      if (text === undefined || text === '') return [];
      const separator = kind === 'map' ? ',' : kind === 'headers' ? '\n' : undefined;
      const texts = separator === undefined ? [text] : text.split(separator);
      return [[key, { path: name, value: fromText(kind, texts) }]];
    }),
  );
}

/** Warnings about misspelled variables. They contain names only, never values. */
export function environmentWarnings(env: Environment): string[] {
  const known = new Set([
    configFileVariable,
    apiKeysVariable,
    kernelVariable,
    ...options.map(([key]) => environmentNameOf(key)),
  ]);
  // Only similar names: Kubernetes itself sets GANGWAY_SERVICE_HOST and the like for a service named gangway.
  return Object.keys(env).flatMap((name) => {
    if (!name.startsWith('GANGWAY_') || known.has(name)) return [];
    const nearest = nearestName(
      name.slice('GANGWAY_'.length),
      [...known].map((each) => each.slice('GANGWAY_'.length)),
    );
    return nearest === undefined
      ? []
      : [`The environment variable ${name} has no effect: it is not an option. Did you mean GANGWAY_${nearest}?`];
  });
}
