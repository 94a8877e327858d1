import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { waitFor } from '../support/wait-for.ts';
import { withOptions } from './walk.ts';

/** True if the program is on the PATH, and this call of it succeeds. */
export function has(program: string, ...args: readonly string[]): boolean {
  try {
    execFileSync(program, args, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

export const hasNginx = has('nginx', '-v');

/**
 * nginx as a service of this machine: what `nginx` and `systemctl restart nginx` do, with its files in a folder of their own. The
 * end of the test ends it.
 */
export function nginxService() {
  const folder = mkdtempSync(join(tmpdir(), 'gangway-nginx-'));
  const pidFile = join(folder, 'nginx.pid');
  // As Debian's: the files of conf.d are part of it.
  mkdirSync(join(folder, 'conf.d'));
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  );
  const logs = `error_log ${folder}/error.log; pid ${pidFile};`;
  const http = `access_log off; ${paths.join(' ')} include ${folder}/conf.d/*.conf;`;
  writeFileSync(join(folder, 'nginx.conf'), `${logs} events {} http { ${http} }`);
  const isThere = () => existsSync(pidFile);
  onTestFinished(async () => {
    if (isThere()) {
      process.kill(Number(readFileSync(pidFile, 'utf8')), 'SIGTERM');
      await waitFor(() => !isThere(), { what: 'nginx to end' });
    }
    rmSync(folder, { recursive: true, force: true });
  });
  const nginx = withOptions('nginx', '-c', join(folder, 'nginx.conf'), '-p', folder);
  return {
    instead: {
      '/etc/nginx/nginx.conf': join(folder, 'nginx.conf'),
      '/etc/nginx/': `${folder}/`,
      '/run/nginx.pid': pidFile,
      '/var/log/nginx/': `${folder}/`,
      '/tmp/': `${folder}/`,
    },
    programs: { nginx, systemctl: 'exec nginx' },
  };
}
