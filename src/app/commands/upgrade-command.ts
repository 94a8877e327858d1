import type { Configuration, GatewayConfig, LocalServer, ServerConfig } from '../../config/config.ts';
import {
  isPackageWord,
  nameOfPackageRequest,
  packageForms,
  readPackage,
} from '../../config/servers/package-request.ts';
import { type GatewaySetup, needed } from '../features/gateway-features.ts';
import type { PackageFailure } from '../features/servers.ts';
import { type PackageServer, packageServerOf, packagesFolder } from '../servers/package-server.ts';
import { toolRunner } from '../servers/run-tool.ts';
import { failed, misconfigured } from './outcome.ts';

type Checked = Extract<Configuration, { readonly config: GatewayConfig }>;

/** A package, and the variables with which its server runs. */
interface Upgrade extends PackageServer {
  readonly env: LocalServer['env'];
}

/**
 * Installs the newest version of a package, or of the packages of a configuration file (`mcp-gangway upgrade`). A running
 * gateway starts its next process with it.
 * @param print called with each result
 * @returns the exit code
 */
export async function upgradePackages(
  configuration: Checked,
  setup: GatewaySetup,
  print: (line: string) => void,
): Promise<number> {
  const found = upgradesOf(configuration, setup);
  if (typeof found === 'string') {
    print(found);
    return misconfigured;
  }
  let exitCode = 0;
  for (const { request, packages, env } of found) {
    const name = nameOfPackageRequest(request);
    const before = packages.versionOf(request);
    try {
      const { version } = await packages.upgrade(request, toolRunner(setup.environment, env));
      const whatIsNew =
        before === undefined
          ? `${version} is installed`
          : `${version}, before ${before}. Processes that start from now on have it`;
      print(`${name}: ${version === before ? `${version} is the newest version` : `${whatIsNew}.`}`);
    } catch (error) {
      const { message, output = [] } = error as PackageFailure;
      print([`${name}: ${message}`, ...output.map((line) => `  | ${line}`)].join('\n'));
      exitCode = failed;
    }
  }
  return exitCode;
}

/** The packages that are meant, or the reason why there is none. */
function upgradesOf({ config, defaults, word, file }: Checked, setup: GatewaySetup): readonly Upgrade[] | string {
  const ofServer = (server: ServerConfig): Upgrade[] => {
    const packaged = packageServerOf(server, setup);
    return packaged === undefined || server.address !== undefined ? [] : [{ ...packaged, env: server.env }];
  };
  if (word !== undefined && isPackageWord(word)) {
    const read = readPackage([word], defaults.packages);
    if (!read.ok || read.request === undefined) return `${word} is not the name of a package, such as ${packageForms}`;
    const packages = needed(setup.features.packages, 'packages').at(packagesFolder(setup));
    return [{ request: read.request, packages, env: defaults.env }];
  }
  if (file === undefined)
    return `upgrade needs a package, such as ${packageForms}, or a server of a file (--config FILE)`;
  const meant = config.servers.filter(({ name }) => word === undefined || name === word);
  const all = meant.flatMap(ofServer);
  if (all.length > 0) return all;
  return meant.length === 0
    ? `${file} has no server ${word}`
    : `No package of ${word ?? file} is installed by the gateway.`;
}
