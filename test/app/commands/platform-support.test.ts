import { describe, expect, it } from 'vitest';
import { platformSupport } from '../../../src/app/commands/platform-support.ts';
import { readConfiguration, type ServerConfig } from '../../../src/config/config.ts';

const serversOf = (...argv: string[]): readonly ServerConfig[] => {
  const read = readConfiguration({ argv, env: {}, readFile: () => '' });
  return read.ok && 'config' in read ? read.config.servers : [];
};

describe('platformSupport', () => {
  it.each(['linux', 'darwin', 'freebsd'] as const)('has nothing to say on %s', (platform) => {
    expect(platformSupport(platform, serversOf('--', 'demo'))).toEqual({});
  });

  it('names the STDIO servers that Windows cannot run, and the remedy', () => {
    const { obstacle } = platformSupport('win32', serversOf('--name', 'git', '--', 'demo'));
    expect(obstacle).toMatch(
      /^STDIO servers \(git\) need process groups.*\. Run the gateway in WSL2 or Docker; see https:/,
    );
  });

  it('names the servers at Unix sockets', () => {
    expect(platformSupport('win32', serversOf('unix:///run/demo.sock')).obstacle).toContain(
      'servers at unix:// (demo)',
    );
  });

  it('only warns about servers at URLs', () => {
    const support = platformSupport('win32', serversOf('https://mcp.example.com/mcp'));
    expect(support).toEqual({ warning: expect.stringContaining('never tested on Windows') });
  });
});
