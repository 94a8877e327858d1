// The STDIO server of docker-compose.yml: a line is a message. Put your own in its place, in deploy/stdio.json.
import { createInterface } from 'node:readline';
import { answer } from './demo-tools.mjs';

createInterface({ input: process.stdin })
  .on('line', (line) => void answer(JSON.parse(line), (text) => process.stdout.write(`${text}\n`)))
  .on('close', () => process.exit(0));
