import { readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from './gateway.ts';
import { type Violation, violationsOf } from './log-checker.ts';
import type { SessionTranscript } from './transcript.ts';
import { type Waiting, waitFor } from './wait-for.ts';

/** The journal of a server: the calls that all its processes really ran. */
export interface Journal {
  /** The command of the server in `journal-server.mjs`. */
  readonly command: readonly string[];
  /** The started calls, once for each start. */
  started(): readonly string[];
  /** The finished calls, once for each run. */
  done(): readonly string[];
  /** Resolves when the server has started a call. */
  hasStarted(call: string, waiting?: Waiting): Promise<unknown>;
  /** The contradictions between the answers of clients and the journal; see `violationsOf`. */
  violations(transcripts: readonly SessionTranscript[]): readonly Violation[];
  remove(): Promise<void>;
}

/** Makes an empty journal, in a folder of its own. */
export async function createJournal(): Promise<Journal> {
  const folder = await mkdtemp(join(tmpdir(), 'gangway-journal-'));
  const file = join(folder, 'journal');
  writeFileSync(file, '');
  const callsThatAre = (state: string): readonly string[] =>
    readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line.startsWith(`${state} `))
      .map((line) => line.slice(state.length + 1));
  const started = () => callsThatAre('started');
  return {
    command: [process.execPath, `${root}test/support/journal-server.mjs`, file],
    started,
    done: () => callsThatAre('done'),
    hasStarted: (call, waiting) =>
      waitFor(() => started().includes(call), { what: `the start of ${call}`, ...waiting }),
    violations: (transcripts) => violationsOf({ transcripts, executions: started() }),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}
