// Clients that open a session, make one call, and leave without a DELETE: initialize, notifications/initialized, tools/call.
import { McpSession } from '../lib/mcp-session.mjs';
import { faultOf, requestHead } from './echo.mjs';
import { startMeter } from './meter.mjs';
import { createPayload } from './payloads.mjs';
import { Tally } from './tally.mjs';

const maxFaults = 20;

/** `maxCount` sessions after `warmCount` others, `clients` at a time. The sessions stay, so the target is not used again. */
export async function sessionCalls({ ports, pids, token, clients, payload: kind, bytes, warmCount, maxCount, runMs }) {
  const tally = new Tally();
  const payload = createPayload(kind, bytes);
  const until = performance.now() + runMs;
  let opened = 0;

  const openAndCall = async () => {
    const session = new McpSession(ports, token);
    const tag = `s${opened}:`;
    const startedAt = performance.now();
    try {
      await session.open();
      const answer = await session.call(`${requestHead(1, tag, '')}${payload.after}`);
      const fault = faultOf(answer, 1, tag, payload);
      if (fault === undefined) tally.answered(performance.now() - startedAt);
      else tally.fault(fault);
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
  const read = startMeter(pids);
  tally.isRecording = true;
  await openUpTo(warmCount + maxCount);
  const { answers, latency, faults } = tally;
  return { answers, latency, faults, notClosed: 0, ...read() };
}
