// Clients that open a session, make one call, and leave without a DELETE: initialize, notifications/initialized, tools/call.
// Some make a second call.
import { McpSession } from '../lib/mcp-session.mjs';
import { faultOf, requestHead } from './echo.mjs';
import { startMeter } from './meter.mjs';
import { createPayload } from './payloads.mjs';
import { Tally } from './tally.mjs';

const maxFaults = 20;

/** So many sessions after the measured ones make a second call, which shows how long a call alone takes under such load. */
const probeCount = 160;

/** `maxCount` sessions after `warmCount` others, `clients` at a time. The sessions stay, so the target is not used again. */
export async function sessionCalls(job) {
  const { ports, token, clients, warmCount, maxCount, runMs } = job;
  const tally = new Tally();
  const secondCalls = new Tally();
  const payload = createPayload(job.payload, job.bytes);
  const until = performance.now() + runMs;
  let opened = 0;

  const openAndCall = async () => {
    const session = new McpSession(ports, { token });
    const tag = `s${opened}:`;
    const call = async (id, to, startedAt) => {
      const answer = await session.call(`${requestHead(id, tag, '')}${payload.after}`);
      const fault = faultOf(answer, id, tag, payload);
      if (fault === undefined) to.answered(performance.now() - startedAt);
      else tally.fault(fault);
    };
    const startedAt = performance.now();
    try {
      await session.open();
      await call(1, tally, startedAt);
      if (secondCalls.isRecording) await call(2, secondCalls, performance.now());
    } catch (error) {
      tally.fault(error.message);
    }
    session.rest();
  };
  const openUpTo = async (count) => {
    const client = async () => {
      while (opened < count && performance.now() < until && tally.faultCount < maxFaults) {
        opened += 1;
        await openAndCall();
      }
    };
    await Promise.all(Array.from({ length: clients }, client));
  };

  await openUpTo(warmCount);
  const read = startMeter(job);
  tally.isRecording = true;
  await openUpTo(warmCount + maxCount);
  const used = read();
  tally.isRecording = false;
  secondCalls.isRecording = true;
  await openUpTo(warmCount + maxCount + probeCount);
  const { answers, latency, faults } = tally;
  return { answers, latency, callLatency: secondCalls.latency, faults, notClosed: 0, ...used };
}
