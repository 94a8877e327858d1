import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Environment } from '../../config/sources/environment-variables.ts';

/** How long the file exists. A browser that has to start first takes some seconds. */
const fileMs = 60_000;

/**
 * Opens the status page in the browser of a desktop. A browser gets the URL through a file that only this user can
 * read: other users can see the arguments of a process, and the URL can end with the code for the page.
 * @param environment the gateway's; the browser does not get its `GANGWAY_` variables, which can be secrets (P12)
 * @returns why the page could not be opened, as a sentence; undefined if a program took the URL
 */
export async function openInBrowser(url: string, environment: Environment): Promise<string | undefined> {
  const opener = openerOn(process.platform, environment);
  if (opener === undefined) return 'This machine has no desktop (DISPLAY and WAYLAND_DISPLAY are not set).';
  const folder = mkdtempSync(join(tmpdir(), 'mcp-gangway-open-'));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  const file = join(folder, 'status-page.html');
  writeFileSync(file, redirectTo(url), { mode: 0o600 });
  process.on('exit', remove);
  setTimeout(remove, fileMs).unref();
  return run(opener, file, environment);
}

/** Returns the program that opens files; undefined on a machine without a desktop. */
function openerOn(platform: NodeJS.Platform, environment: Environment): string | undefined {
  if (platform === 'darwin') return 'open';
  const hasDesktop = [environment['DISPLAY'], environment['WAYLAND_DISPLAY']].some(Boolean);
  return hasDesktop ? 'xdg-open' : undefined;
}

/** Returns a page that goes to the URL at once, and shows a link otherwise. */
function redirectTo(url: string): string {
  const safe = url.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="referrer" content="no-referrer">
    <meta http-equiv="refresh" content="0; url=${safe}">
    <title>mcp-gangway</title>
  </head>
  <body><a href="${safe}">Open the status page</a></body>
</html>
`;
}

/** Runs the program detached, because a browser can stay open longer than the gateway. */
function run(program: string, file: string, environment: Environment): Promise<string | undefined> {
  const env = Object.fromEntries(Object.entries(environment).filter(([name]) => !name.startsWith('GANGWAY_')));
  return new Promise((resolve) => {
    const child = spawn(program, [file], { stdio: 'ignore', detached: true, env });
    child.once('error', ({ message }) => resolve(`${program} does not start: ${message}.`));
    child.once('exit', (code) => resolve(code === 0 ? undefined : `${program} ended with code ${code}.`));
    child.unref();
  });
}
