// Copies the Lua scripts of the Redis store to the build, beside what reads them; tsc only knows TypeScript.
import { cpSync } from 'node:fs';

cpSync('src/store/redis/scripts', 'dist/store/redis/scripts', { recursive: true });
