import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, extname, join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { root } from '../support/gateway.ts';
import { findFreePort } from '../support/redis-process.ts';
import { waitFor, withDeadline } from '../support/wait-for.ts';
import { type Block, blocksOf, hasShown, isShown } from './page.ts';

/**
 * Follows a page as a reader does, in a copy of the checkout. The rules for the pages:
 *
 * - a block `sh` is a command line, and all of them share one shell;
 * - one whose first line is `# Terminal 2`, or another number, runs until the end of the walk;
 * - a block `text` behind a block `sh` is what a reader sees;
 * - a block with a second word behind the fence is a file, which the reader writes;
 * - a block `sh` below `<!-- not run: why -->` is left out.
 */
export interface WalkOptions {
  /** From the root of the checkout. */
  readonly page: string;
  /** Where the reader's first terminal is, from the root of the checkout; the folder of the page otherwise. */
  readonly folder?: string;
  /** The part below these headings; all of it otherwise. */
  readonly headings?: readonly string[];
  /** True where the page builds the image of the gateway. */
  readonly buildsImage?: boolean;
  /** Ports that the page names. Free ones take their place, in the page and in the files of the folder. */
  readonly ports?: readonly number[];
  /** Other replacements, such as the name of a host. Outputs show the page's words again. */
  readonly replace?: Readonly<Record<string, string>>;
  /** Replacements in commands and files alone. */
  readonly instead?: Readonly<Record<string, string>>;
  /** Replacements in outputs alone. */
  readonly shown?: Readonly<Record<string, string>>;
  /** Programs in front of the PATH: the lines of a shell script by name. */
  readonly programs?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
  /** Variables of one terminal, by its number. */
  readonly terminalEnv?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** For each command. */
  readonly deadlineMs?: number;
}

/** A page that was followed to its end. Its terminals are still open; the end of the test closes them. */
export interface Walk {
  /** The copy of the folder. */
  readonly folder: string;
  /** What each block `sh` printed, with the page's ports. */
  readonly outputs: readonly string[];
  /** The port that stands in for one of the page. */
  port(named: number): number;
  /** Runs one more command in the reader's shell, and resolves with what it prints. */
  run(command: string): Promise<string>;
  /** Ends the processes of a terminal. SIGKILL spares the servers, which have process groups of their own. */
  end(terminal: string, signal?: 'SIGTERM' | 'SIGKILL'): Promise<void>;
}

/** A program of this machine with more options, for `programs`. */
export const withOptions = (name: string, ...options: string[]): string =>
  `PATH="${process.env['PATH']}" exec ${[name, ...options].join(' ')} "$@"`;

/** The programs that a reader has, beside those of the machine. */
const usual = {
  // As on a terminal.
  curl: withOptions('curl', '--no-progress-meter'),
  'mcp-gangway': `exec "${process.execPath}" "${root}dist/main.js" "$@"`,
  // `npx -y <package> …`, of what is installed here.
  npx: `shift; package=$1; shift; exec "${root}node_modules/.bin/mcp-$(basename "$package")" "$@"`,
};

/** The context of the Dockerfile. */
const partsOfImage = [
  ...['Dockerfile', '.dockerignore', '.npmrc', 'package-lock.json', 'LICENSE', 'tsconfig.json'],
  ...['scripts/build.mjs', 'src'],
];

/** Files whose ports and names are replaced; a Dockerfile has no ending. */
const texts = new Set(['.json', '.mjs', '.yaml', '.yml', '.conf', '.cfg', '.md', '']);

/** Replaces each word by its value, but not what a value brought. */
function inOnePass(text: string, words: Readonly<Record<string, string>>): string {
  const escaped = Object.keys(words)
    .sort((one, other) => other.length - one.length)
    .map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return escaped.length === 0 ? text : text.replace(new RegExp(escaped.join('|'), 'g'), (word) => words[word] ?? word);
}

export async function walk({
  page,
  folder: from = dirname(page),
  headings,
  buildsImage = false,
  ports = [],
  replace = {},
  instead = {},
  shown: inOutputs = {},
  programs = {},
  env = {},
  terminalEnv = {},
  deadlineMs = 90_000,
}: WalkOptions): Promise<Walk> {
  const checkout = mkdtempSync(join(tmpdir(), 'gangway-walk-'));
  const terminals = new Map<string, ChildProcess>();
  onTestFinished(async () => {
    for (const terminal of terminals.keys()) await end(terminal);
    rmSync(checkout, { recursive: true, force: true, maxRetries: 5 });
  }, 60_000);
  const given = new Map<number, number>();
  for (const port of ports) given.set(port, await findFreePort());
  const replaceAll = (text: string): string =>
    inOnePass(text, { ...replace, ...instead }).replace(
      /\b\d{4,5}\b/g,
      (digits) => `${given.get(Number(digits)) ?? digits}`,
    );
  const restore = (text: string): string => {
    const named = new Map([...given].map(([port, free]) => [`${free}`, `${port}`]));
    let restored = text.replace(/\b\d{4,5}\b/g, (digits) => named.get(digits) ?? digits);
    for (const [old, now] of Object.entries(replace)) restored = restored.replaceAll(now, old);
    for (const [old, now] of Object.entries(inOutputs)) restored = restored.replaceAll(old, now);
    return restored.replaceAll(checkout, '').replaceAll('\r', '');
  };

  const copied = ['examples', 'deploy', 'package.json', ...(buildsImage ? partsOfImage : [])];
  for (const name of copied) cpSync(`${root}${name}`, join(checkout, name), { recursive: true });
  symlinkSync(`${root}node_modules`, join(checkout, 'node_modules'));
  const folder = join(checkout, from);
  mkdirSync(folder, { recursive: true });
  for (const edited of ['examples', 'deploy']) {
    for (const entry of readdirSync(join(checkout, edited), { recursive: true, withFileTypes: true })) {
      const path = join(entry.parentPath, entry.name);
      if (!entry.isFile() || !texts.has(extname(entry.name)) || entry.name === 'dashboard.json') continue;
      const text = readFileSync(path, 'utf8');
      const replaced = replaceAll(text);
      if (replaced !== text) writeFileSync(path, replaced);
    }
  }
  const bin = join(checkout, 'bin');
  mkdirSync(bin);
  for (const [name, script] of Object.entries({ ...usual, ...programs })) {
    writeFileSync(join(bin, name), `#!/bin/bash\n${script}\n`);
    chmodSync(join(bin, name), 0o755);
  }

  const options = {
    cwd: folder,
    detached: true,
    // The gateway's default ports are replaced too. There is no port for operators, unless the page has one.
    env: {
      ...process.env,
      GANGWAY_ADMIN_PORT: `${given.get(9464) ?? 0}`,
      ...(given.has(8080) && { GANGWAY_PORT: `${given.get(8080)}` }),
      ...env,
      PATH: `${bin}:${process.env['PATH']}`,
    },
  };
  const end = async (terminal: string, signal: NodeJS.Signals = 'SIGTERM'): Promise<void> => {
    const child = terminals.get(terminal);
    terminals.delete(terminal);
    if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    // A daemon that it started may hold its output open.
    const exited = once(child, 'exit');
    process.kill(-child.pid, signal);
    await withDeadline(exited, { deadlineMs: 30_000, what: `terminal ${terminal} to end` });
  };

  const shell = spawn('bash', ['--norc'], { ...options, stdio: ['pipe', 'pipe', 'inherit'] });
  terminals.set('1', shell);
  let printed = '';
  shell.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    printed += chunk;
  });
  // The first command that fails ends the shell.
  shell.stdin.write('exec 2>&1\nset -e -o pipefail\n');
  const mark = '\u0001';
  const run = async (command: string): Promise<string> => {
    const start = printed.length;
    shell.stdin.write(`{\n${replaceAll(command)}\n} </dev/null\nprintf '\\1'\n`);
    const isDone = () => {
      if (shell.exitCode !== null) throw new Error(`\`${command}\` ended with ${shell.exitCode}`);
      return printed.includes(mark, start);
    };
    await waitFor(isDone, { deadlineMs, what: `the end of \`${command}\`` }).catch((error: Error) => {
      throw new Error(`${error.message}\nIt printed:\n${printed.slice(start)}`, { cause: error });
    });
    return restore(printed.slice(start, printed.indexOf(mark, start)));
  };

  const open = async (terminal: string, command: string, shown: string | undefined, where: string): Promise<string> => {
    const child = spawn('bash', ['--norc', '-c', `exec 2>&1\n${replaceAll(command)}`], {
      ...options,
      env: { ...options.env, ...terminalEnv[terminal] },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    terminals.set(terminal, child);
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk;
    });
    if (shown === undefined) throw new Error(`${where}: say in a block \`text\` what terminal ${terminal} prints`);
    const isUp = () => {
      if (child.exitCode !== null) throw new Error(`${where}: terminal ${terminal} ended:\n${output}`);
      return hasShown(shown, restore(output));
    };
    await waitFor(isUp, { deadlineMs, what: `terminal ${terminal}` }).catch((error: Error) => {
      throw new Error(`${where}: ${error.message}\nIt is to print:\n${shown}\nIt printed:\n${output}`, {
        cause: error,
      });
    });
    return restore(output);
  };

  const blocks = blocksOf(readFileSync(`${root}${page}`, 'utf8')).filter(
    ({ heading }) => headings?.includes(heading) ?? true,
  );
  const outputs: string[] = [];
  for (const [index, block] of blocks.entries()) {
    if (block.file !== undefined) {
      const path = join(folder, block.file);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, replaceAll(`${block.text}\n`));
    }
    if (block.language !== 'sh' || block.file !== undefined || block.notRun !== undefined) continue;
    const next: Block | undefined = blocks[index + 1];
    const shown = next?.language === 'text' && next.file === undefined ? next.text : undefined;
    const where = `${page}:${block.line}`;
    const [, terminal] = /^# Terminal (\d+)/.exec(block.text) ?? [];
    if (terminal !== undefined && terminal !== '1') {
      outputs.push(await open(terminal, block.text, shown, where));
      continue;
    }
    const output = await run(block.text).catch((error: Error) => {
      throw new Error(`${where}: ${error.message}`, { cause: error });
    });
    outputs.push(output);
    if (shown !== undefined && !isShown(shown, output)) expect(output, where).toBe(shown);
  }
  return { folder, outputs, port: (named) => given.get(named) ?? named, run, end };
}
