import { createServer } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { explainListenFailure, listen } from '../../../src/app/addresses/listen.ts';

const operatorPort = { host: 'listen.adminHost', port: 'listen.adminPort', zeroMeans: 'disables it' } as const;
const failure = (code: string): Error => Object.assign(new Error('bind failed'), { code });

it('names the port in use, and the options of the client port', async () => {
  const first = createServer();
  onTestFinished(() => {
    first.close();
  });
  const port = await listen(first, { host: '127.0.0.1', port: 0 });
  await expect(listen(createServer(), { host: '127.0.0.1', port })).rejects.toThrow(
    `Port ${port} on 127.0.0.1 is in use. Choose another port with --port or GANGWAY_PORT; 0 selects any free port.`,
  );
});

it.each([
  [
    'EADDRINUSE',
    'Port 80 on ::1 is in use. Choose another port with --admin-port or GANGWAY_ADMIN_PORT; 0 disables it.',
  ],
  ['EACCES', 'This user may not open port 80. Choose a port above 1023 with --admin-port.'],
  ['EADDRNOTAVAIL', 'The address ::1 does not belong to this machine. Correct --listen.adminHost.'],
  ['ENOTFOUND', 'The address ::1 does not belong to this machine. Correct --listen.adminHost.'],
  ['EIO', 'The gateway cannot listen on ::1:80: bind failed'],
])('explains %s with the options of the port', (code, text) => {
  expect(explainListenFailure(failure(code), { host: '::1', port: 80 }, operatorPort)).toBe(text);
});
