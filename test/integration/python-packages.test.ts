// Servers by the name of a Python package, from an index on this machine. Without Python, these tests are skipped.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openAnswered } from '../support/answered-session.ts';
import { startGateway } from '../support/gateway.ts';

const hasPython = spawnSync('python3', ['-m', 'venv', '--help']).status === 0;

/** Writes a wheel with one module and one program: a server that tells its arguments. */
const writeWheel = `
import sys, zipfile
name, version, path = sys.argv[1:4]
module = name.replace('-', '_')
server = '''
import json, sys
def main():
    for line in sys.stdin:
        message = json.loads(line)
        if 'id' not in message: continue
        params = message.get('params') or {}
        results = {
            'initialize': {'protocolVersion': params.get('protocolVersion'), 'capabilities': {'tools': {}}, 'serverInfo': {'name': 'py', 'version': '1'}},
            'ping': {},
            'tools/call': {'content': [{'type': 'text', 'text': json.dumps(sys.argv[1:])}]},
        }
        result = results.get(message['method'])
        answer = {'result': result} if result is not None else {'error': {'code': -32601, 'message': 'Method not found'}}
        print(json.dumps({'jsonrpc': '2.0', 'id': message['id'], **answer}), flush=True)
'''
info = f'{module}-{version}.dist-info'
files = {
    f'{module}.py': server,
    f'{info}/METADATA': f'Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n',
    f'{info}/WHEEL': 'Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n',
    f'{info}/entry_points.txt': f'[console_scripts]\\n{name} = {module}:main\\n',
}
files[f'{info}/RECORD'] = ''.join(f'{each},,\\n' for each in [*files, f'{info}/RECORD'])
with zipfile.ZipFile(path, 'w') as wheel:
    for each, text in files.items(): wheel.writestr(each, text)
`;

test.skipIf(!hasPython)(
  'a package of PyPI is installed once, and its program starts again without an index',
  async () => {
    const home = await mkdtemp(join(tmpdir(), 'gangway-python-'));
    onTestFinished(() => rm(home, { recursive: true, force: true }));
    const wheel = join(home, 'test_server-1.2.0-py3-none-any.whl');
    await writeFile(join(home, 'write-wheel.py'), writeWheel);
    execFileSync('python3', [join(home, 'write-wheel.py'), 'test-server', '1.2.0', wheel]);
    const bytes = await readFile(wheel);
    const index = createServer((incoming, outgoing) => {
      if (incoming.url === '/simple/test-server/')
        outgoing
          .setHeader('content-type', 'text/html')
          .end('<a href="/test_server-1.2.0-py3-none-any.whl">test_server-1.2.0-py3-none-any.whl</a>');
      else if (incoming.url?.endsWith('.whl') === true) outgoing.end(bytes);
      else outgoing.writeHead(404).end();
    });
    await new Promise<void>((resolve) => index.listen(0, '127.0.0.1', resolve));
    const simple = `http://127.0.0.1:${(index.address() as AddressInfo).port}/simple/`;
    const close = () => new Promise((resolve) => index.close(resolve));
    onTestFinished(async () => void (index.listening && (await close())));
    const env = {
      PIP_INDEX_URL: simple,
      UV_INDEX_URL: simple,
      PIP_FIND_LINKS: undefined,
      UV_CACHE_DIR: join(home, 'uv'),
    };
    const folder = join(home, 'installed');
    const start = (...words: readonly string[]) =>
      startGateway({ args: ['--packages.folder', folder, ...words], env, readyDeadlineMs: 240_000 });
    const askArguments = async (url: string) => {
      const session = await openAnswered(url);
      const answer = await session.request('tools/call', { name: 'any', arguments: {} });
      return JSON.parse(answer.json.result.content[0].text);
    };
    const gateway = await start('uvx:test-server', '--city', 'Oslo');
    expect(gateway.stdout()).toContain('Packages: test-server 1.2.0 from PyPI');
    expect(await askArguments(gateway.url)).toEqual(['--city', 'Oslo']);
    const commands = (await gateway.descendants()).map(({ command }) => command);
    expect(commands.some((command) => command.includes('venv/bin/python'))).toBe(true);
    await gateway.stop();
    index.closeAllConnections();
    await close();
    const later = await start('--', 'uvx', 'test-server', 'again');
    expect(await askArguments(later.url)).toEqual(['again']);
  },
  300_000, // Python makes an environment and installs into it, which takes ten seconds of processor time
);
