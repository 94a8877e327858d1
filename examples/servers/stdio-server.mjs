// A STDIO server without npm packages, for the examples. Each line of its stdin and stdout is one message.
import { createInterface } from 'node:readline';
import { answer } from './tools.mjs';

createInterface({ input: process.stdin })
  .on('line', (line) => void answer(JSON.parse(line), (text) => process.stdout.write(`${text}\n`)))
  .on('close', () => process.exit(0));
