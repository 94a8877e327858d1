import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { Random } from '../resume/random.ts';
import { initialize, type Session } from '../support/http-client.ts';
import { withDeadline } from '../support/wait-for.ts';
import { asker } from './asking.ts';
import type { Ledger } from './ledger.ts';
import { modern } from './modern.ts';
import { oldFace } from './old-face.ts';
import { sdkClient } from './sdk-clients.ts';
import { modernSdk, oldSdk } from './sdk-other.ts';
import { canceller, churn, vanisher } from './sessions.ts';
import { sleeper } from './sleeper.ts';
import type { Stage } from './stage.ts';
import { hangMs, outcomeOfError, type Talker, type TalkTools } from './talker.ts';
import { watcher } from './watcher.ts';

/** So long a server of the fixtures takes to start. */
const startMs = 2_000;

/** Everybody but the sessions of the rounds. */
const talkers: readonly Talker[] = [
  churn,
  asker('asks', ['test_elicitation', 'test_sampling', 'roots']),
  asker('modern', ['test_input_required_result_elicitation', 'test_input_required_result_sampling']),
  modern('stdio', 'quick'),
  modern('asks', 'echo'),
  modern('modern', 'echo'),
  canceller,
  vanisher,
  sleeper,
  sdkClient,
  modernSdk,
  oldFace,
  oldSdk,
  watcher,
];

/** Clients at work. */
export interface Talking {
  /** Resolves when all have ended what they do. */
  stop(): Promise<void>;
}

/** Lets all of them talk until they are stopped. `load` is 1 for the rates as they stand here. */
export function startTalkers(stage: Stage, ledger: Ledger, random: Random, load: number): Talking {
  const stopped = new AbortController();
  setMaxListeners(0, stopped.signal); // each client waits for it
  const pause = (ms: number): Promise<void> => delay(ms, undefined, { signal: stopped.signal }).catch(() => undefined);
  let marks = 0;
  const run = async ({ name, everyMs, once }: Talker, own: Random): Promise<void> => {
    const deed: TalkTools['deed'] = async (part, ownMs, act) => {
      const startedAt = performance.now();
      const trail: string[] = [];
      const tell = (seen: string): void => void trail.push(`${Math.round(performance.now() - startedAt)} ms: ${seen}`);
      const acting = withDeadline(act(tell), { deadlineMs: hangMs, what: part });
      const outcome = await acting.catch(outcomeOfError);
      const kind = part === '' ? name : `${name}: ${part}`;
      ledger.note({ kind, startedAt, endedAt: performance.now(), outcome, ownMs, trail });
      return outcome;
    };
    const tools: TalkTools = {
      ...{ stage, ledger, random: own, stopped: stopped.signal, pause, deed },
      mark: () => `talk-${++marks}-${own.integer(0, 1e9)}`,
      async open(url, options) {
        let session: Session | undefined;
        await deed('open', startMs, async () => {
          session = await initialize(url, options);
          return 'answered';
        });
        return session;
      },
    };
    await pause(own.integer(0, everyMs / load));
    while (!stopped.signal.aborted) {
      await once(tools).catch((error: Error) => ledger.fail(`${name}: ${error.stack}`));
      await pause(own.integer(everyMs / load / 2, (1.5 * everyMs) / load));
    }
  };
  const running = talkers.flatMap((talker) =>
    Array.from({ length: talker.atOnce ?? 1 }, () => run(talker, random.fork())),
  );
  return {
    async stop() {
      stopped.abort();
      await Promise.all(running);
    },
  };
}
