// The server of mini.c in Node, for machines without gcc.
import { createInterface } from 'node:readline';
import { handle } from './tools.mjs';

const write = (text) => process.stdout.write(`${text}\n`);
createInterface({ input: process.stdin }).on('line', (line) => handle(JSON.parse(line), write));
