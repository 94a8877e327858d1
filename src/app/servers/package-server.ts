import { accessSync, constants, existsSync } from 'node:fs';
import { delimiter, dirname, join, resolve } from 'node:path';
import type { LocalServer, ServerConfig } from '../../config/config.ts';
import { nameOfPackageRequest, type PackageRequest } from '../../config/servers/package-request.ts';
import type { Environment } from '../../config/sources/environment-variables.ts';
import { userDirectory } from '../../config/store-place.ts';
import { minute } from '../../config/units.ts';
import type { OpenBackend } from '../../core/backend/backend.ts';
import { LaterBackend, type Opening } from '../../core/backend/later-backend.ts';
import { childEnvironment } from '../../core/backend/stdio/launch/child-environment.ts';
import { defaultPath } from '../../core/backend/stdio/launch/locate-program.ts';
import type { ServerEvent } from '../../core/ops/server-events.ts';
import { detach } from '../../core/util/boundary.ts';
import type { Emit } from '../../core/util/telemetry/emit.ts';
import { type GatewaySetup, needed } from '../features/gateway-features.ts';
import type { PackageFailure, Packages } from '../features/servers.ts';
import { toolRunner } from './run-tool.ts';

/** A program, as it replaces the command of a server. */
export interface StartedProgram {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** A server that is a package, and where its package is. */
export interface PackageServer {
  readonly request: PackageRequest;
  readonly packages: Packages;
}

/** The folder of all packages. Throws an error for the operator if there is none. */
export function packagesFolder({ config, environment }: Pick<GatewaySetup, 'config' | 'environment'>): string {
  const own = userDirectory(environment);
  const folder = config.packages.folder ?? (own && join(own, 'packages'));
  if (folder !== undefined) return resolve(folder);
  throw new Error('There is no folder for packages, because HOME is not set. Name one with --packages.folder.');
}

/** The package of a server that the gateway installs; undefined for any other server. */
export function packageServerOf(config: ServerConfig, setup: GatewaySetup): PackageServer | undefined {
  const { features, environment } = setup;
  const request = config.address === undefined ? config.package : undefined;
  if (config.address !== undefined || request === undefined) return undefined;
  if (request.isLauncher && (features.packages === undefined || isInstalledOtherwise(request, config, environment)))
    return undefined;
  const packages = needed(features.packages, 'servers by the name of a package').at(packagesFolder(setup));
  return { request, packages };
}

/** True for a command of `npx` or `uvx` that would run a program of this machine, and no package of a registry. */
function isInstalledOtherwise(
  { registry, name, wanted, program }: PackageRequest,
  { cwd = '.', env }: LocalServer,
  environment: Environment,
): boolean {
  if (wanted !== undefined) return false;
  const path = childEnvironment(environment, env)['PATH'] ?? defaultPath;
  if (path.split(delimiter).some((folder) => isProgram(join(folder, program ?? name)))) return true;
  return (
    registry === 'npm' && foldersAbove(resolve(cwd)).some((folder) => existsSync(join(folder, 'node_modules', name)))
  );
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

const foldersAbove = (folder: string): string[] =>
  dirname(folder) === folder ? [folder] : [folder, ...foldersAbove(dirname(folder))];

/** What is known of a server's package, for people; undefined for a server that is none. */
export function describePackage(config: ServerConfig, setup: GatewaySetup): string | undefined {
  const server = packageServerOf(config, setup);
  if (server === undefined) return undefined;
  const { request, packages } = server;
  const from = request.registry === 'npm' ? 'npm' : 'PyPI';
  return `${request.name} ${packages.versionOf(request) ?? '(not installed yet)'} from ${from}`;
}

/** True for a server whose package must be installed before it can start. */
export function needsInstallation(config: ServerConfig, setup: GatewaySetup): boolean {
  const server = packageServerOf(config, setup);
  return server !== undefined && server.packages.versionOf(server.request) === undefined;
}

/** Of what server the package is installed, and who is told. */
export interface InstallationOptions {
  readonly config: LocalServer;
  readonly server: PackageServer;
  readonly environment: Environment;
  readonly emit: Emit<ServerEvent>;
}

/** How a package server is opened. */
export interface PackageOpenerOptions extends InstallationOptions {
  /** Opens the backend of a program. */
  openerOf(program: StartedProgram): OpenBackend;
  /** Opens what the operator has written; only `npx` and `uvx` can run a package themselves. */
  readonly asWritten: OpenBackend;
}

/** A failed installation is not tried again sooner, however many clients come (P8). */
const retryAfterMs = 10_000;

/** As long, `npx` or `uvx` runs a package that could not be installed. */
const launcherMs = 10 * minute;

/** The installation of a server's package, which all openers of the server share. */
class Installation {
  readonly #options: InstallationOptions;
  #running: Promise<PackageFailure | undefined> | undefined;
  #failure: { readonly cause: PackageFailure; readonly at: number } | undefined;

  constructor(options: InstallationOptions) {
    this.#options = options;
  }

  /** Resolves when the package is installed, or with the reason why it is not. */
  finish(): Promise<PackageFailure | undefined> {
    const { request } = this.#options.server;
    const pauseMs = request.isLauncher ? launcherMs : retryAfterMs;
    if (this.#failure !== undefined && performance.now() - this.#failure.at < pauseMs)
      return Promise.resolve(this.#failure.cause);
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #run(): Promise<PackageFailure | undefined> {
    const { config, server, environment } = this.#options;
    const { request, packages } = server;
    const startedAt = performance.now();
    this.#report('installing', `in ${packages.folder}`);
    try {
      const { version } = await packages.install(request, toolRunner(environment, config.env));
      this.#report('installed', `version ${version}, after ${Math.round(performance.now() - startedAt)} ms`);
      return undefined;
    } catch (error) {
      const cause = error as PackageFailure;
      this.#failure = { cause, at: performance.now() };
      this.#report(
        'failed',
        request.isLauncher ? `${cause.message} ${config.command} runs it instead.` : cause.message,
      );
      return cause;
    }
  }

  #report(state: 'installing' | 'installed' | 'failed', detail: string): void {
    const { config, server, emit } = this.#options;
    emit({ type: 'package', server: config.name, package: nameOfPackageRequest(server.request), state, detail });
  }
}

const installations = new WeakMap<PackageRequest, Installation>();

/** The installation of a server's package, which may not have begun. */
function installationOf(options: InstallationOptions): Installation {
  const { request } = options.server;
  const installation = installations.get(request) ?? new Installation(options);
  installations.set(request, installation);
  return installation;
}

/** Installs the package of a server, unless it is installed. Resolves with the reason if it cannot be. */
export const installPackage = (options: InstallationOptions): Promise<PackageFailure | undefined> =>
  options.server.packages.versionOf(options.server.request) === undefined
    ? installationOf(options).finish()
    : Promise.resolve(undefined);

/** Opens a server by its installed package. Its installation begins at once, and backends wait for it. */
export function packageOpener(options: PackageOpenerOptions): OpenBackend {
  const { config, server, environment, openerOf, asWritten } = options;
  const { request, packages } = server;
  const installation = installationOf(options);

  /** Read each time, so that the next process has the version of an upgrade. */
  const found = (): OpenBackend | undefined => {
    const program = packages.find(request);
    if (program === undefined) return undefined;
    const own = childEnvironment(environment, config.env);
    const path = [program.programs, own['PATH'] ?? defaultPath].join(delimiter);
    return openerOf({ command: program.command, args: program.args, env: { ...own, PATH: path } });
  };

  const openingAfter = (cause: unknown): Opening => {
    if (request.isLauncher) return asWritten;
    const { message: detail, output = [] } = cause as PackageFailure;
    return { reason: 'failed', detail, lastOutput: output, cause };
  };

  const install = async (): Promise<Opening> => {
    const failure = await installation.finish();
    return failure === undefined ? (found() ?? asWritten) : openingAfter(failure);
  };

  const open: OpenBackend = (events, opening) => {
    try {
      const now = found();
      if (now !== undefined) return now(events, opening);
    } catch (cause) {
      const failed = openingAfter(cause);
      return new LaterBackend(Promise.resolve(failed), events, opening);
    }
    return new LaterBackend(install(), events, opening);
  };
  detach('background', packages.versionOf(request) === undefined ? installation.finish() : packages.sweep());
  return open;
}
