// The starter: a second, small process of the gateway, which starts the servers' processes (docs/decisions/0205).
//
// It hands the three pipes of a process over to the gateway, so that no message passes through it. It reports the exit
// of each process. When the gateway is gone, however that happened, it ends every process group that is left (P10).
// Plain CommonJS, which Node.js loads sooner and with fewer threads: a start copies the memory of this process.
const { spawn } = require('node:child_process');

// Names no gateway: who ends gateways by their name, with SIGKILL, leaves this process to end their servers.
process.title = `mcp server starter ${process.ppid}`;

/** From the end of the gateway, and so of the servers' input, to SIGTERM; and to SIGKILL. */
const terminateAfterMs = 300;
const killAfterMs = 1_500;
const pollMs = 20;
const watchMs = 100;

/** The leaders of the process groups that may still have processes. Those of a starter that was lost are arguments. */
const groups = new Set(process.argv.slice(2).map(Number));
let isEnding = false;

/** Sends a signal to a group, or looks whether it has a process (0). A group that cannot be reached is forgotten. */
function signalGroup(pid, signal) {
  try {
    process.kill(-pid, signal);
    return true;
  } catch {
    groups.delete(pid);
    return false;
  }
}

/** How many processes wait for their pipes to be handed over. */
let handingOver = 0;
let watch;

/** Node.js emits no 'disconnect' while pipes wait to be handed over. */
function beginHandingOver() {
  handingOver += 1;
  watch ??= setInterval(() => process.connected || endGroups(), watchMs);
}

function endHandingOver() {
  handingOver -= 1;
  if (handingOver > 0) return;
  clearInterval(watch);
  watch = undefined;
}

const ignoreFailure = () => undefined; // the gateway is gone

function tell(message, handle, onSent = ignoreFailure) {
  if (process.connected) process.send(message, handle, { keepOpen: false }, onSent);
}

const reportFailure = (id, error) => tell({ id, failure: { code: error.code, message: error.message } });

function start({ id, command, args, ...options }) {
  let child;
  try {
    child = spawn(command, args, { ...options, shell: false, detached: true, stdio: ['pipe', 'pipe', 'pipe'] });
  } catch (error) {
    reportFailure(id, error); // ENOTDIR, E2BIG, a NUL in an argument
    return;
  }
  const { pid, stdin, stdout, stderr } = child;
  if (pid === undefined) {
    // ENOENT, EACCES, EAGAIN, EMFILE and ENFILE come as an event. With the last two, there is no `stdin`.
    child.once('error', (error) => reportFailure(id, error));
    return;
  }
  groups.add(pid);
  child.once('exit', (exitCode, signal) => tell({ id, exit: { exitCode, signal }, isGroupGone: !signalGroup(pid, 0) }));
  // Node.js reads a pipe as soon as it exists, and empties and closes it at the exit. A pipe may have to wait for its turn
  // to be handed over, and what was read here meanwhile would be missing in the gateway.
  for (const pipe of [stdout, stderr]) pipe._handle.readStop();
  Object.assign(child, { stdin: null, stdout: null, stderr: null, stdio: [] });
  beginHandingOver();
  tell({ id, part: 'stdin' }, stdin);
  tell({ id, part: 'stdout' }, stdout);
  tell({ id, part: 'stderr' }, stderr);
  tell({ id, pid }, undefined, endHandingOver); // comes after the pipes: a part that is missing then was lost on the way
}

function endGroups() {
  if (isEnding) return;
  isEnding = true;
  setTimeout(() => signalAll('SIGTERM'), terminateAfterMs);
  setTimeout(() => {
    signalAll('SIGKILL');
    process.exit();
  }, killAfterMs);
  setInterval(exitIfAllEnded, pollMs);
  exitIfAllEnded();
}

function exitIfAllEnded() {
  signalAll(0);
  if (groups.size === 0) process.exit();
}

function signalAll(signal) {
  for (const pid of [...groups]) signalGroup(pid, signal);
}

process.on('message', ({ start: program, forget }) => {
  groups.delete(forget);
  if (program !== undefined) start(program);
});
process.on('disconnect', endGroups);
// While the gateway runs, it starts another starter, which ends the groups if need be.
process.on('uncaughtException', () => (process.connected ? process.exit(1) : endGroups()));
// A supervisor may send its signal to all processes of the gateway. This one ends last.
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => undefined);
