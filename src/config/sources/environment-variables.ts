import { nearestName } from '../../core/util/text/nearest-name.ts';
import { defaultsBranch, options, variablesOf } from '../options/option-names.ts';
import type { ReferenceSources } from './expand-variables.ts';
import { type Given, readTexts } from './given-values.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Names the configuration file, like `--config`. */
export const configFileVariable = 'GANGWAY_CONFIG';

/** The variable in which hosting platforms pass the URL of a Redis; the same as `--redis`. */
const redisVariable = 'REDIS_URL';

/**
 * API keys, as `name:sha256:hash`, separated by commas. There is no such flag, because the key file has one.
 */
export const apiKeysVariable = 'GANGWAY_API_KEYS';

const knownNames = new Set([configFileVariable, apiKeysVariable, ...[...options.keys()].flatMap(variablesOf)]);

/** The options that the environment sets. An empty variable counts as not set, because compose files create such ones. */
export function givenByEnvironment(env: Environment, references: ReferenceSources): Given {
  return new Map(
    [...options].flatMap(([path, { kind }]) => {
      const name = nameInUse(path, env);
      const text = name === undefined ? undefined : env[name];
      if (name === undefined || text === undefined) return [];
      if (kind === 'integer' && serviceLink.test(text)) {
        references.report(name, serviceLinkFault);
        return [];
      }
      const separator = kind === 'map' ? ',' : kind === 'headers' ? '\n' : undefined;
      const given = readTexts({ kind }, [text], name, references, separator);
      return given === undefined ? [] : [[path, given]];
    }),
  );
}

/** Kubernetes sets GANGWAY_PORT to such a URL in each pod beside a service named gangway. */
const serviceLink = /^(?:tcp|udp|sctp):\/\//;
const serviceLinkFault =
  'is set by Kubernetes for a service of this name; set enableServiceLinks: false in the pod, or rename the service';

/** The variable that sets an option, if one does. The short name has precedence. */
function nameInUse(path: string, env: Environment): string | undefined {
  const others = path === 'cluster.redis' ? [redisVariable] : [];
  return [...variablesOf(path), ...others].find((name) => env[name]);
}

/** Warnings about variables without effect. They contain names only, never values. */
export function environmentWarnings(env: Environment): string[] {
  const hidden = [...options.keys()].flatMap((path) => {
    const [first, ...others] = variablesOf(path).filter((name) => env[name]);
    return others.map((name) => `The environment variable ${name} has no effect, because ${first} is also set.`);
  });
  const shortNames = [...knownNames].map((each) => each.slice('GANGWAY_'.length));
  // Only similar names: Kubernetes itself sets GANGWAY_SERVICE_HOST and the like for a service named gangway.
  const unknown = Object.keys(env).flatMap((name) => {
    if (!name.startsWith('GANGWAY_') || knownNames.has(name)) return [];
    const word = name.slice('GANGWAY_'.length);
    const ofServers = `${defaultsBranch.toUpperCase()}_${word}`;
    const nearest = shortNames.includes(ofServers) ? ofServers : nearestName(word, shortNames);
    return nearest === undefined
      ? []
      : [
          `The environment variable ${name} has no effect, because it does not name an option. Did you mean GANGWAY_${nearest}?`,
        ];
  });
  return [...hidden, ...unknown];
}
