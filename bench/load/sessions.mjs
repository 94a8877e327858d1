// Sessions opened in bursts, then all deleted. With `besides`, one more session calls one call after the other meanwhile.
import { setTimeout as sleep } from 'node:timers/promises';
import { McpSession } from '../lib/mcp-session.mjs';
import { closeSessions } from './client-sessions.mjs';
import { requestHead } from './echo.mjs';
import { startMeter } from './meter.mjs';
import { Tally } from './tally.mjs';

const maxFaults = 20;

/**
 * One session makes one call after the other. Resolves with a function that ends this, and resolves with the session and its
 * longest call in milliseconds.
 */
async function callUntilStopped(ports, tally) {
  const session = new McpSession(ports);
  await session.open();
  let isOver = false;
  let longestMs = 0;
  const calling = (async () => {
    for (let id = 1; !isOver && tally.faultCount < maxFaults; id++) {
      const startedAt = performance.now();
      const answer = await session.call(`${requestHead(id, `beside.${id}:`, '')}"}}}`);
      if (!answer.includes(`"text":"beside.${id}:`)) tally.fault(`of a call beside: ${answer}`);
      longestMs = Math.max(longestMs, performance.now() - startedAt);
    }
  })();
  return async () => {
    isOver = true;
    await calling;
    return { session, longestMs };
  };
}

/** `restMs` after each burst is what a gateway with warm spares has to start the next ones. */
export async function sessions(job) {
  const { ports, inflight, restMs, maxCount, runMs, besides = false } = job;
  const tally = new Tally();
  tally.isRecording = true;
  const open = async () => {
    const session = new McpSession(ports);
    const startedAt = performance.now();
    try {
      await session.open();
      tally.answered(performance.now() - startedAt);
    } catch (error) {
      tally.fault(error.message);
    }
    return session;
  };
  const opened = [];
  const stopBeside = besides ? await callUntilStopped(ports, tally) : undefined;
  const until = performance.now() + runMs;
  const read = startMeter(job);
  while (opened.length < maxCount && performance.now() < until && tally.faultCount < maxFaults) {
    opened.push(...(await Promise.all(Array.from({ length: inflight }, open))));
    if (restMs > 0) await sleep(restMs);
  }
  const used = read();
  const { session, longestMs: longestBesideMs } = (await stopBeside?.()) ?? {};
  if (session !== undefined) opened.push(session);
  const notClosed = await closeSessions(opened);
  const { answers, latency, faults } = tally;
  return { answers, latency, faults, notClosed, longestBesideMs, ...used };
}
