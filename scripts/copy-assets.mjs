// Copies to the build what tsc leaves out, each beside what reads it: the Lua scripts of the Redis store, the status page.
import { cpSync } from 'node:fs';

for (const folder of ['store/redis/scripts', 'ops/status/page']) {
  cpSync(`src/${folder}`, `dist/${folder}`, { recursive: true });
}
