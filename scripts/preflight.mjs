// Looks for the programs that the tests start. Installs what is missing where it may, else says how to.
//
//   node scripts/preflight.mjs [--without redis,browser]
//
// It installs on Debian and Ubuntu, as root or with a sudo that asks for no password, and on macOS with Homebrew. It uses
// nothing but Node.js.
import { spawnSync } from 'node:child_process';
import { accessSync, constants, readFileSync, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const say = (text) => process.stdout.write(`${text}\n`);
export const warn = (text) => process.stderr.write(`${text}\n`);

/** Where programs for tests can be besides PATH: Debian gives a user without rights no `sbin`. */
const moreFolders = ['/usr/local/sbin', '/usr/sbin', '/sbin', '/opt/homebrew/bin'];
const searched = [...new Set([...(process.env.PATH ?? '').split(delimiter), ...moreFolders])].filter(Boolean);

const macApps = ['Chromium.app/Contents/MacOS/Chromium', 'Google Chrome.app/Contents/MacOS/Google Chrome'];

/**
 * A program: the names and paths that it can have, the packages that contain it, and the word with which a run goes on
 * without the tests that need it.
 */
const programs = [
  { names: ['redis-server'], apt: 'redis-server', brew: 'redis', group: 'redis' },
  {
    // The shell without windows comes first: a test takes half the processor time of the whole browser.
    names: [
      ...['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome'],
      ...macApps.map((app) => join('/Applications', app)),
    ],
    apt: 'chromium-headless-shell',
    ubuntu: 'chromium-browser',
    brew: 'chromium',
    group: 'browser',
    variable: 'CHROMIUM',
  },
  { names: ['nginx'], apt: 'nginx-light', brew: 'nginx', group: 'nginx' },
  { names: ['haproxy'], apt: 'haproxy', brew: 'haproxy', group: 'haproxy' },
  { names: ['openssl'], apt: 'openssl', brew: 'openssl' },
  { names: ['curl'], apt: 'curl', brew: 'curl' },
  { names: ['ps'], apt: 'procps', brew: 'procps' },
];

/** The words that `--without` takes. */
const groups = programs.flatMap(({ group }) => group ?? []);

function isProgram(path) {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false; // expected: most folders do not have it, and some cannot be entered
  }
}

const find = (name) => (name.startsWith('/') ? [name] : searched.map((folder) => join(folder, name))).find(isProgram);

const locate = ({ names, variable }) => [process.env[variable] ?? '', ...names].filter(Boolean).map(find).find(Boolean);

const distribution = () => {
  try {
    return /^ID=(.*)$/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1];
  } catch {
    return undefined;
  }
};

// The tests start servers of their own. Those that packages start, at the ports that everybody knows, stay off: Debian
// asks policy-rc.d. A machine that has one keeps it.
const aptScript = `
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  trap 'rm -f "$policy"' EXIT INT TERM
  printf '#!/bin/sh\\nexit 101\\n' >"$policy"
  chmod +x "$policy"
fi
apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"`;

/**
 * How missing programs come to this machine: `command` for a person, and `run` if nobody has to be asked.
 * @returns undefined where no package manager is known
 */
function installerOf(missing) {
  if (find('apt-get') !== undefined) {
    const isUbuntu = distribution() === 'ubuntu';
    const packages = missing.map(({ apt, ubuntu }) => (isUbuntu && ubuntu) || apt);
    const words = ['sh', '-c', aptScript, 'sh', ...packages];
    if (process.getuid() === 0) return { command: `apt-get install ${packages.join(' ')}`, run: words };
    const maySudo = find('sudo') && spawnSync('sudo', ['-n', 'true'], { stdio: 'ignore', timeout: 900 }).status === 0;
    return {
      command: `sudo apt-get install --no-install-recommends ${packages.join(' ')}`,
      ...(maySudo && { run: ['sudo', '-n', ...words] }),
    };
  }
  if (find('brew') !== undefined) {
    const words = ['brew', 'install', ...missing.map(({ brew }) => brew)];
    return { command: words.join(' '), run: words };
  }
  return undefined;
}

/**
 * Makes sure that the programs are there, and returns the variables with which tests find them. Says what is missing and
 * returns undefined if they are not.
 * @param without groups whose tests do not run
 */
export function checkPrograms(without) {
  const needed = programs.filter(({ group }) => !without.includes(group));
  let missing = needed.filter((program) => locate(program) === undefined);
  const installer = missing.length > 0 ? installerOf(missing) : undefined;
  if (installer?.run !== undefined) {
    say(`The tests need programs that are not installed. Running: ${installer.command}`);
    const [file, ...args] = installer.run;
    spawnSync(file, args, { stdio: ['ignore', 'inherit', 'inherit'] });
    missing = missing.filter((program) => locate(program) === undefined);
  }
  if (missing.length > 0) {
    const names = missing.map(({ names: [name] }) => name).join(', ');
    const optional = missing.flatMap(({ group }) => group ?? []);
    warn(`The tests need programs that ${installer?.run ? 'could not be installed' : 'are missing'}: ${names}.`);
    warn(`Install them:\n\n    ${installer?.command ?? 'with the package manager of this system'}\n`);
    if (optional.length === missing.length)
      warn(`Or run the tests that do not need them:\n\n    npm test -- --without ${optional.join(',')}\n`);
    return undefined;
  }
  const found = needed.flatMap(({ variable, ...program }) =>
    variable ? [[variable, locate({ variable, ...program })]] : [],
  );
  return { PATH: searched.join(delimiter), ...Object.fromEntries(found) };
}

/** The groups of `--without`, and the other arguments. Ends this process if there is no such group. */
export function readWithout(args) {
  const at = args.findIndex((arg) => arg === '--without' || arg.startsWith('--without='));
  if (at === -1) return { without: [], rest: args };
  const [, inline] = args[at].split('=');
  const without = (inline ?? args[at + 1] ?? '').split(',').filter(Boolean);
  if (without.length === 0 || without.some((group) => !groups.includes(group))) {
    warn(`--without takes a list of these words, with commas between them: ${groups.join(', ')}.`);
    process.exit(1);
  }
  return { without, rest: args.toSpliced(at, inline === undefined ? 2 : 1) };
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  process.exitCode = checkPrograms(readWithout(process.argv.slice(2)).without) ? 0 : 1;
