// Loaded before a gateway of the soak (`--import`): appends a line `<from> <to>`, in milliseconds since 1970, to the file
// SOAK_LATENESS/<pid> whenever its event loop stood still for so long that a command to Redis may have timed out.
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';

const { SOAK_LATENESS, SOAK_LATE_MS } = process.env;
const everyMs = 50;
let last = Date.now();
// Before it listens, it has nothing to be late for.
const hasBegun = () => process.getActiveResourcesInfo().includes('TCPServerWrap');
let isWatching = false;
setInterval(() => {
  const now = Date.now();
  if (isWatching && now - last - everyMs >= Number(SOAK_LATE_MS))
    appendFileSync(join(SOAK_LATENESS, `${process.pid}`), `${last + everyMs} ${now}\n`);
  isWatching ||= hasBegun();
  last = now;
}, everyMs).unref();
