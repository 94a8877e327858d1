import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { root, startGateway } from '../support/gateway.ts';
import { certificateFolder } from '../support/server-certificate.ts';

const command = [process.execPath, `${root}test/fixtures/children/chatty.mjs`];

/** Runs `mcp-gangway health` as the health check of a container does. */
async function health(...args: readonly string[]) {
  const child = spawn(process.execPath, [`${root}dist/main.js`, 'health', ...args], {
    env: { ...process.env, REDIS_URL: '' },
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [said, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')]);
  return { said, code };
}

describe('mcp-gangway health', () => {
  const folder = certificateFolder();
  afterAll(() => folder.remove());

  it('[P-06] takes the port and the certificate from the options of the gateway', async () => {
    // The names of the certificate are those that clients use, not the address that is asked.
    const { cert, key } = await folder.make('first', 'DNS:mcp.example.com');
    const tls = ['--tls-cert', cert, '--tls-key', key];
    const gateway = await startGateway({ args: tls, command });
    const options = ['--port', `${gateway.port}`, ...tls, '--', ...command];
    expect(await health(...options)).toEqual({
      code: 0,
      said: `https://127.0.0.1:${gateway.port}/healthz answered 200.\n`,
    });
    expect(await health('--ready', ...options)).toMatchObject({ code: 0, said: expect.stringContaining('/readyz') });
    await gateway.stop();
    expect(await health(...options)).toMatchObject({
      code: 1,
      said: expect.stringContaining('did not answer: nothing listens there. Start the gateway'),
    });
  });

  it('needs no server to be named', async () => {
    const gateway = await startGateway({ command });
    expect(await health('--port', `${gateway.port}`)).toMatchObject({ code: 0 });
  });

  it('says what is wrong with its options', async () => {
    expect(await health('--port', 'x', '--', ...command)).toEqual({ code: 2, said: '' });
  });
});
