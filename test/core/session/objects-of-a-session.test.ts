import { queryObjects } from 'node:v8';
import { expect, it } from 'vitest';
import { readMessage } from '../../support/fake-backend.ts';
import { createFakeReply } from '../../support/fake-reply.ts';
import { noteMeasure, targetOf } from '../../support/measures.ts';
import { turn } from '../../support/wait-for.ts';
import { openSessions } from './open-sessions.ts';
import { createServer, initialize } from './session-fixture.ts';

const count = 40;

/** How many objects are alive that are no functions. */
const countObjects = (): number =>
  queryObjects(Object, { format: 'count' }) - queryObjects(Function, { format: 'count' });

const attempts = 3;

/** How many objects each call of this leaves behind: at the least, since other things of this process come and go. */
async function objectsOf(create: () => Promise<unknown>): Promise<number> {
  const counts: number[] = [];
  for (let n = 0; n < attempts; n += 1) counts.push(await countOnce(create));
  return Math.min(...counts);
}

async function countOnce(create: () => Promise<unknown>): Promise<number> {
  const kept = [await create(), await create()]; // what all of them share
  await turn();
  const before = countObjects();
  for (let n = 0; n < count; n += 1) kept.push(await create());
  await turn();
  return (countObjects() - before) / count;
}

// Counting reads the heap again and again, which takes half a minute on a busy machine.
it('an idle session has at most 50 objects, beside those of its backend', { timeout: 300_000 }, async () => {
  const sessions = openSessions({}, 2 * attempts * count);
  const ofSession = await objectsOf(async () => (await sessions.open()).session);
  const { fake } = createServer();
  const ofBackend = await objectsOf(async () => {
    const backend = fake.open({
      onMessages: () => undefined,
      onNoise: () => undefined,
      onUnanswered: () => undefined,
      onEnd: () => undefined,
    });
    backend.send(readMessage(initialize));
    createFakeReply();
    return backend;
  });
  // The test runner makes a few objects meanwhile. One object of a session would be one for each of them.
  const objects = Math.round(ofSession - ofBackend);
  noteMeasure('idle-session', objects);
  expect(objects).toBeLessThanOrEqual(targetOf('idle-session'));
});
