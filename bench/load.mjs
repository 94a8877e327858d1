// One load job, run by bench.mjs in a process of its own: node load.mjs '<job as JSON>'. Prints its result as one line.
import { echo } from './load/echo.mjs';
import { idle } from './load/idle.mjs';
import { paced } from './load/paced.mjs';
import { sessionCalls } from './load/session-calls.mjs';
import { sessions } from './load/sessions.mjs';
import { stream } from './load/stream.mjs';

const kinds = { echo, paced, stream, sessions, 'session-calls': sessionCalls, idle };
const job = JSON.parse(process.argv[2]);

const finish = (result) => process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit(0));
setTimeout(() => finish({ failed: `not done within ${job.limitMs} ms` }), job.limitMs);
kinds[job.kind](job).then(finish, (error) => finish({ failed: error.message }));
