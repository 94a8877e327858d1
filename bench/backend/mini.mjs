// The server of mini.c in Node, for machines without gcc. --legacy: it knows only revisions with sessions.
import { createInterface } from 'node:readline';
import { handle as handleAll, legacy } from './tools.mjs';

const handle = process.argv.includes('--legacy') ? legacy() : handleAll;
const write = (text) => process.stdout.write(`${text}\n`);
createInterface({ input: process.stdin }).on('line', (line) => handle(JSON.parse(line), write));
