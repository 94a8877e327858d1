import { execFile } from 'node:child_process';
import { appendFileSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { verifyAudit } from '../../src/app/commands/audit-command.ts';
import { audit as auditFeature } from '../../src/features/audit/feature.ts';
import { createAuditFile } from '../support/audit-lines.ts';
import { everythingFixture, root, startGateway } from '../support/gateway.ts';
import { initialize } from '../support/http-client.ts';
import { findFreePort } from '../support/redis-process.ts';
import { waitFor } from '../support/wait-for.ts';

/** Runs `mcp-gangway audit verify`. */
const runVerify = (...files: readonly string[]): Promise<{ code: number; text: string }> =>
  new Promise((resolve) => {
    execFile(process.execPath, [`${root}dist/main.js`, 'audit', 'verify', ...files], (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), text: stdout + stderr }),
    );
  });

/** What the command does, in this process. */
async function verify(files: readonly string[], known?: string): Promise<{ code: number; text: string }> {
  const { exitCode, stdout = '', stderr = '' } = await verifyAudit(files, known, { audit: auditFeature });
  return { code: exitCode, text: stdout + stderr };
}

/** Runs a gateway with a chain until its audit file has some more lines. */
async function writeLines(audit: ReturnType<typeof createAuditFile>, signal: NodeJS.Signals = 'SIGTERM') {
  const linesNow = (): number => audit.text().split('\n').length;
  const before = linesNow();
  const gateway = await startGateway({ args: [...audit.args, '--observe.auditChain'], command: everythingFixture });
  const session = await initialize(gateway.url);
  await session.callTool('echo', { text: 'x' });
  await session.request('tools/list');
  await waitFor(() => linesNow() >= before + 3, { what: 'three more lines' });
  await gateway.stop(signal);
}

test('a chain is whole over restarts, a kill and a rotation; a change is named with its line', async () => {
  const audit = createAuditFile();
  await writeLines(audit);
  await writeLines(audit, 'SIGKILL');
  appendFileSync(audit.path, '{"time":"2026-'); // as when the machine stops in the middle of a write
  await writeLines(audit);
  const whole = await verify([audit.path]);
  expect(whole.text).toContain(`${audit.path}:1: begins the chain`);
  expect(whole.text).toContain(`${audit.path}:7: is cut`);
  expect(whole.text).toMatch(/The chain of 10 lines is whole\. The hash of the last line is [\w-]{43}\./);
  expect(whole.code).toBe(0);

  const old = `${audit.path}.1`;
  const gateway = await startGateway({ args: [...audit.args, '--observe.auditChain'], command: everythingFixture });
  renameSync(audit.path, old);
  process.kill(gateway.pid, 'SIGHUP');
  await waitFor(() => existsSync(audit.path) && audit.lines().length > 0, { what: 'the new file' });
  await gateway.stop();
  await writeLines(audit);
  expect((await verify([old, audit.path])).code).toBe(0);
  expect((await verify([audit.path])).text).toContain('continues an earlier file, whose last line has the hash');

  // As it stands in the page.
  const page = readFileSync(`${root}docs/audit.md`, 'utf8');
  const [, files = ''] = /^mcp-gangway audit verify (.*)$/m.exec(page) ?? [];
  const here = files.replaceAll('/var/log/mcp-gangway/audit.jsonl', audit.path).split(' ');
  expect(here).toEqual([old, audit.path]);
  expect((await runVerify(...here)).code).toBe(0);

  const text = readFileSync(audit.path, 'utf8');
  writeFileSync(audit.path, text.replace('"name":"echo"', '"name":"else"'));
  const changed = await verify([old, audit.path]);
  const at = text.split('\n').findIndex((line) => line.includes('"name":"echo"')) + 2;
  expect(changed.text).toContain(
    `${audit.path}:${at}: line ${at} does not follow from line ${at - 1}: line ${at - 1} was changed`,
  );
  expect(changed.text).toContain('The chain is broken.');
  expect(changed.code).toBe(1);

  const lines = text.split('\n');
  writeFileSync(audit.path, [...lines.slice(0, 1), ...lines.slice(2)].join('\n'));
  expect((await verify([audit.path])).text).toContain(`${audit.path}:2: line 2 does not follow from line 1: `);
  writeFileSync(audit.path, [...lines.slice(0, 1), '{"time":"now","outcome":"ok"}', ...lines.slice(1)].join('\n'));
  expect((await verify([audit.path])).text).toContain(`${audit.path}:2: has no hash of the line before: it was added`);

  // The old file alone tells a gateway that starts after a rotation where to go on.
  rmSync(audit.path);
  await writeLines(audit);
  expect((await verify([old, audit.path])).code).toBe(0);
});

test('a changed or removed last line shows with the hash that an earlier check has printed', async () => {
  const audit = createAuditFile();
  await writeLines(audit);
  const [, hash = ''] = /hash of the last line is ([\w-]{43})/.exec((await verify([audit.path])).text) ?? [];
  const same = await runVerify(`--last=${hash}`, audit.path);
  expect(same).toMatchObject({ code: 0, text: expect.stringContaining('is unchanged, and no line follows.') });
  const text = readFileSync(audit.path, 'utf8');
  await writeLines(audit);
  expect((await verify([audit.path], hash)).text).toMatch(/is unchanged, and \d lines follow\./);
  const whole = readFileSync(audit.path, 'utf8');
  // The file before was rotated away.
  writeFileSync(audit.path, whole.slice(text.length));
  expect((await verify([audit.path], hash)).code).toBe(0);

  const lines = text.trimEnd().split('\n');
  for (const changed of [
    text.replace(/"name":"[^"]*"(?=[^\n]*\n$)/, '"name":"else"').replace(/"time":"(?=[^\n]*\n$)/, '"time":"9'),
    `${lines.slice(0, -1).join('\n')}\n`,
    '',
  ]) {
    expect(changed).not.toBe(text);
    writeFileSync(audit.path, changed);
    // Without the hash, nothing shows it.
    expect((await verify([audit.path])).code).toBe(0);
    const found = await verify([audit.path], hash);
    expect(found.text).toContain('No line has the hash of --last: the line that was the last one was changed');
    expect(found.code).toBe(1);
  }
  expect(await runVerify('--last', 'abc', audit.path)).toMatchObject({ code: 2 });
});

test('audit verify needs files, and says which one it cannot read', async () => {
  expect(await runVerify()).toMatchObject({ code: 2, text: expect.stringContaining('needs the audit files') });
  expect(await runVerify('/no/such/file')).toMatchObject({ code: 1, text: expect.stringContaining('/no/such/file') });
});

test.each([
  ['', []],
  [', although the status page shows those of all failed calls', ['--observe.showContents']],
])(
  '[P12] arguments are in the audit log only for the tools that an option names, without hidden values, and bounded%s',
  async (_, more) => {
    const audit = createAuditFile();
    const args = [...audit.args, '--defaults.audit.arguments', 'ec*', '--defaults.audit.hide', 'pass*', ...more];
    const gateway = await startGateway({ args, command: everythingFixture, adminPort: await findFreePort() });
    const session = await initialize(gateway.url);
    await session.callTool('echo', { text: 'seen', password: 'canary-hidden', deep: [{ passphrase: 1, 'pass/2': 2 }] });
    await session.callTool('slow', { ms: 1, password: 'canary-other' });
    await session.callTool('echo', { text: 'x'.repeat(9_000) });
    await audit.words(4);
    const [, echo, slow, long] = audit.lines();
    expect(echo?.['arguments']).toEqual({
      text: 'seen',
      password: '(hidden)',
      deep: [{ passphrase: '(hidden)', 'pass/2': '(hidden)' }],
    });
    expect(slow).not.toHaveProperty('arguments');
    expect(long).not.toHaveProperty('arguments');
    expect(long?.['argumentBytes']).toBe(9_011);
    expect(audit.text()).not.toContain('canary-');
    expect(gateway.stderr()).not.toContain('seen');
  },
);
