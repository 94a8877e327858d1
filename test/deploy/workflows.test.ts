import { execFileSync } from 'node:child_process';
import { accessSync, constants, readdirSync, readFileSync } from 'node:fs';
import { convertWorkflowTemplate, NoOperationTraceWriter, parseWorkflow } from '@actions/workflow-parser';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { root } from '../support/gateway.ts';

/** .github/workflows: that GitHub understands them, and that they run what everybody else runs. */

interface Step {
  uses?: string;
  run?: string;
  with?: Record<string, unknown>;
}
interface Job {
  uses?: string;
  steps?: Step[];
  permissions?: Record<string, string>;
  'timeout-minutes'?: number;
  strategy?: { matrix: { node?: number[] } };
  needs?: string | string[];
}
interface Workflow {
  permissions: Record<string, string>;
  jobs: Record<string, Job>;
}

const folder = `${root}.github/workflows`;
const names = readdirSync(folder);
const text = (name: string) => readFileSync(`${folder}/${name}`, 'utf8');
const workflow = (name: string): Workflow => parse(text(name));
const manifest = JSON.parse(readFileSync(`${root}package.json`, 'utf8'));

describe.each(names)('%s', (name) => {
  const jobs = Object.values(workflow(name).jobs);
  const steps = jobs.flatMap((job) => job.steps ?? []);
  const commands = steps.flatMap(({ run }) => (run === undefined ? [] : [run]));

  it('is one that the parser of GitHub has nothing to say against', async () => {
    expect(await workflowFaults(name, text(name))).toEqual([]);
    expect(await workflowFaults(name, text(name).replace('runs-on:', 'runs-at:'))).not.toEqual([]);
  });

  it('runs commands that a shell understands, and scripts that there are', () => {
    for (const command of commands) {
      execFileSync('bash', ['-n'], { input: command });
      for (const [, script = ''] of command.matchAll(/npm run ([\w:]+)/g)) {
        expect(Object.keys(manifest.scripts)).toContain(script);
      }
      if (command.startsWith('.')) accessSync(`${root}${command}`, constants.X_OK);
    }
    for (const { uses } of jobs) if (uses !== undefined) accessSync(`${root}${uses}`);
  });

  it('[S-16] takes nothing from elsewhere but actions of GitHub and cosign, each at one commit, whose version stands beside it', () => {
    const allowed = /^(?:actions\/[a-z-]+|sigstore\/cosign-installer)@[0-9a-f]{40}$/;
    for (const { uses } of steps) if (uses !== undefined) expect(uses).toMatch(allowed);
    const lines = text(name)
      .split('\n')
      .filter((line) => /uses: [a-z]/.test(line));
    expect(lines).toHaveLength(steps.filter(({ uses }) => uses !== undefined).length);
    for (const line of lines) expect(line).toMatch(/ # v\d+\.\d+\.\d+$/);
    expect(text(name)).not.toMatch(/npmjs|ghcr|docker\.io|registry-url/);
  });

  it('gives no job more rights than it needs, and no text from outside to a shell', () => {
    expect(workflow(name).permissions).toEqual({ contents: 'read' });
    for (const { permissions } of jobs) {
      if (permissions) expect(permissions).toEqual({ contents: 'read', 'id-token': 'write' });
    }
    // An expression is put into the script as it is; a variable is not.
    for (const command of commands) expect(command).not.toContain('${{');
    const checkouts = steps.filter(({ uses }) => uses?.startsWith('actions/checkout@'));
    for (const checkout of checkouts) expect(checkout.with).toEqual({ 'persist-credentials': false });
  });

  it('ends every job some time', () => {
    for (const job of jobs) expect(job['timeout-minutes'] ?? (job.uses && 1)).toBeGreaterThan(0);
  });
});

describe('check.yml', () => {
  const { tests, image } = workflow('check.yml').jobs;

  it('runs .ci/run on the Node.js versions that are promised, the oldest among them', () => {
    expect(tests?.strategy?.matrix.node).toEqual([20, 22, 24]);
    expect(manifest.engines.node).toMatch(/^>=20\./);
    expect(tests?.steps?.at(-1)?.run).toBe('.ci/run');
    const [, limitMinutes] = /limitMinutes = (\d+)/.exec(readFileSync(`${root}scripts/test.mjs`, 'utf8')) ?? [];
    expect(tests?.['timeout-minutes'] ?? 0).toBeGreaterThan(Number(limitMinutes) + 2);
  });

  it('builds and tries the image', () => {
    expect(image?.steps?.at(-1)?.run).toBe('node test/run.mjs docker');
  });
});

describe('release.yml', () => {
  const { jobs } = workflow('release.yml');

  it('publishes what passed the check, from a tag that is the version', () => {
    expect(jobs['check']?.uses).toBe('./.github/workflows/check.yml');
    for (const name of ['pack', 'image']) expect(jobs[name]?.needs).toEqual(['check', 'version']);
    const command = jobs['version']?.steps?.at(-1)?.run ?? '';
    const run = (tag: string) =>
      execFileSync('bash', ['-c', command], { cwd: root, env: { ...process.env, GITHUB_REF_NAME: tag } });
    run(`v${manifest.version}`);
    expect(() => run('v0.0.0-other')).toThrow();
  });

  it('[S-16] publishes the package with provenance, from a job in which no dependency runs', () => {
    const { pack, package: publish } = jobs;
    expect(pack?.steps?.map(({ run }) => run)).toEqual(expect.arrayContaining(['npm ci', 'npm pack']));
    expect(pack?.permissions).toBeUndefined();
    expect(publish?.needs).toBe('pack');
    expect(publish?.permissions).toHaveProperty('id-token', 'write');
    const commands = publish?.steps?.flatMap(({ run }) => run ?? []);
    expect(commands).toEqual(['npm publish ./*.tgz --provenance --access public --ignore-scripts']);
    const used = publish?.steps?.flatMap(({ uses }) => uses?.replace(/@.*/, '') ?? []);
    expect(used).toEqual(['actions/setup-node', 'actions/download-artifact']);
    const others = Object.entries(jobs).filter(([name]) => name !== 'package' && name !== 'manifest');
    for (const [, job] of others) expect(job.permissions).toBeUndefined();
  });

  it('[S-16] the lock file has the hash of all that runs in production, and lacks it only for platforms that SECURITY.md names', () => {
    const { packages } = JSON.parse(readFileSync(`${root}package-lock.json`, 'utf8')) as {
      packages: Record<
        string,
        { integrity?: string; dev?: boolean; optional?: boolean; resolved?: string; link?: boolean }
      >;
    };
    // The packages of this repository have links in node_modules, and no hash.
    const entries = Object.entries(packages).filter(([at, { link }]) => at.startsWith('node_modules/') && !link);
    const lacking = entries.filter(([, { integrity }]) => integrity === undefined);
    for (const [at, { dev, optional }] of lacking) {
      expect(at).toMatch(/^node_modules\/(?:@biomejs\/cli-|@rollup\/rollup-)/);
      expect([dev, optional]).toEqual([true, true]);
    }
    const security = readFileSync(`${root}SECURITY.md`, 'utf8');
    if (lacking.length > 0) expect(security).toContain('platform packages of Biome and Rollup');
    for (const [, { resolved }] of entries) expect(resolved).toBeUndefined();
  });

  it('[S-16] publishes the image with an SBOM and its provenance, and signs it in a job that runs no code of the project', () => {
    const commandsOf = (name: string) => jobs[name]?.steps?.flatMap(({ run = '' }) => run.trimEnd()) ?? [];
    const build = commandsOf('image').find((run) => run.startsWith('docker buildx build'));
    for (const flag of ['--push', '--sbom=true', '--provenance=mode=max']) expect(build?.split(' ')).toContain(flag);
    expect(commandsOf('image').some((run) => run.includes('--driver docker-container'))).toBe(true);
    // There is a second image, with uv and Python.
    expect(build).toContain('--build-arg "WITH_UV=$WITH_UV"');
    expect(commandsOf('manifest').join()).toContain('--tag "$IMAGE:$NEWEST"');
    expect(readFileSync(`${root}Dockerfile`, 'utf8')).toMatch(/^ARG WITH_UV=0$/m);
    const { manifest: sign } = jobs;
    expect(sign?.permissions).toHaveProperty('id-token', 'write');
    expect(sign?.needs).toBe('image');
    expect(sign?.steps?.flatMap(({ uses }) => uses?.replace(/@.*/, '') ?? [])).toEqual(['sigstore/cosign-installer']);
    const signing = commandsOf('manifest').filter((run) => run.startsWith('cosign '));
    // By digest: a tag could name another image a moment later.
    expect(signing[0]).toBe('cosign sign --yes --recursive "$IMAGE@$DIGEST"');
    expect(signing[1]).toMatch(
      /^cosign verify "\$IMAGE@\$DIGEST" --certificate-identity .+ --certificate-oidc-issuer .+/,
    );
    expect(commandsOf('manifest').join()).not.toMatch(/\bnpm\b|\bnode\b/);
  });

  it('gives the image the labels that its Dockerfile asks for', () => {
    const dockerfile = readFileSync(`${root}Dockerfile`, 'utf8');
    const build = jobs['image']?.steps?.map(({ run = '' }) => run).find((run) => run.startsWith('docker buildx build'));
    for (const label of ['VERSION', 'REVISION', 'SOURCE']) {
      expect(dockerfile).toMatch(new RegExp(`^ARG ${label}=`, 'm'));
      expect(build).toContain(`--build-arg "${label}=`);
    }
  });
});

async function workflowFaults(name: string, content: string): Promise<string[]> {
  const { context, value } = parseWorkflow({ name, content }, new NoOperationTraceWriter());
  if (value === undefined) return context.errors.getErrors().map(String);
  await convertWorkflowTemplate(context, value);
  return context.errors.getErrors().map(String);
}
